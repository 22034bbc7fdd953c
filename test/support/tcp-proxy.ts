/** A TCP proxy that loses, delays and cuts, between a client and a server of a test. */

import { connect, createServer, type Socket } from "node:net";

/** One proxy. */
export interface TcpProxy {
  readonly port: number;
  /** While true, what the server answers is thrown away: the client hears nothing. */
  losesReplies: boolean;
  /** Begins to lose replies with the request that holds this text. */
  loseRepliesTo: string | undefined;
  /** While true, what clients send is kept back, until {@link TcpProxy.deliverLate}. */
  keepsRequests: boolean;
  /** While true, new connections are closed at once. */
  refusesConnections: boolean;
  /** Breaks the connections that there are. What was kept back stays deliverable: the server's ends remain open. */
  cut(): void;
  /** Sends what was kept back to the server, over the connections on which it came. Resolves when the server has taken it. */
  deliverLate(): Promise<void>;
  /** Ends the proxy and all its connections. */
  stop(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly kept: Buffer[];
}

/** Starts a proxy on a free port of this host. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  const sockets = new Set<Socket>();
  const listener = createServer((client) => {
    if (proxy.refusesConnections) {
      client.destroy();
      return;
    }
    const server = connect(targetPort, "127.0.0.1");
    const pair: Pair = { client, server, kept: [] };
    pairs.add(pair);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("data", (data) => {
      if (proxy.loseRepliesTo !== undefined && data.includes(proxy.loseRepliesTo)) {
        proxy.losesReplies = true;
        proxy.loseRepliesTo = undefined;
      }
      if (proxy.keepsRequests) pair.kept.push(data);
      else server.write(data);
    });
    server.on("data", (data) => {
      if (!proxy.losesReplies) client.write(data);
    });
    client.on("close", () => {
      if (pair.kept.length === 0) server.destroy();
    });
    server.on("close", () => {
      pairs.delete(pair);
      client.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(0, "127.0.0.1", resolve);
  });
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("the system gave no port");
  const proxy: TcpProxy = {
    port: address.port,
    losesReplies: false,
    loseRepliesTo: undefined,
    keepsRequests: false,
    refusesConnections: false,
    cut() {
      for (const { client } of pairs) client.destroy();
    },
    async deliverLate() {
      const late = [...pairs].filter(({ kept }) => kept.length > 0);
      await Promise.all(
        late.map(({ server, kept }) => {
          const answered = new Promise((resolve) => server.once("data", resolve));
          for (const data of kept.splice(0)) server.write(data);
          return answered;
        }),
      );
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
  return proxy;
}
