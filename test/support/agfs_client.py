"""A client that behaves towards an AGFS server as the Python SDK and OpenViking's NamedQueue do, with the standard library alone.

    agfs_client.py URL produce QUEUE PREFIX COUNT     writes COUNT messages, and prints each that was answered
    agfs_client.py URL consume QUEUE UNTIL_FILE       handles messages until the file exists and the queue is complete; prints each acked

It keeps its connection, encodes queries as forms, repeats a write after a broken connection and after 502, 503 and 504 (a tenth of the
SDK's pauses), never repeats a read, and takes a failing dequeue for an empty queue.
"""

import http.client
import json
import os
import sys
import threading
import time
import urllib.parse

WORKERS = 3
PAUSES = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]


class Failure(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Client:
    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.address = (parts.hostname, parts.port)
        self.connection = None

    def ask(self, method, endpoint, body=None, **query):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.address, timeout=10)
        target = "/api/v1" + endpoint + "?" + urllib.parse.urlencode(query)
        headers = {"User-Agent": "python-requests/2.31.0", "Accept-Encoding": "gzip, deflate", "Accept": "*/*"}
        try:
            self.connection.request(method, target, body=body, headers=headers)
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise
        if answer.status >= 400:
            raise Failure(answer.status, json.loads(content)["error"])
        return content

    def read(self, path):
        return self.ask("GET", "/files", path=path)

    def write(self, path, data):
        for pause in PAUSES + [None]:
            try:
                return json.loads(self.ask("PUT", "/files", body=data, path=path))
            except (OSError, http.client.HTTPException):
                if pause is None:
                    raise
            except Failure as failure:
                if failure.status not in (502, 503, 504) or pause is None:
                    raise
            time.sleep(pause)

    def mkdir(self, path):
        return json.loads(self.ask("POST", "/directories", path=path, mode="755"))


def produce(url, queue, prefix, count):
    client = Client(url)
    client.mkdir(queue)
    for number in range(int(count)):
        client.write(queue + "/enqueue", json.dumps({"key": f"{prefix}{number}"}).encode())
        print(f"{prefix}{number}", flush=True)


def consume(url, queue, until_file):
    lock = threading.Lock()
    failures = []

    def work():
        client = Client(url)
        try:
            while True:
                try:
                    if json.loads(client.read(queue + "/size")) == 0:
                        status = json.loads(client.read(queue + "/status"))
                        if os.path.exists(until_file) and status == {"pending": 0, "processing": 0}:
                            return
                        time.sleep(0.02)
                        continue
                    content = client.read(queue + "/dequeue")
                except (OSError, http.client.HTTPException, Failure):
                    time.sleep(0.05)
                    continue
                if content == b"{}":
                    continue
                message = json.loads(content)
                answer = client.write(queue + "/ack", message["id"].encode())
                with lock:
                    print(json.loads(message["data"])["key"], "acked" if answer["acked"] else "late", flush=True)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    _, url, action, *rest = sys.argv
    {"produce": produce, "consume": consume}[action](url, *rest)
