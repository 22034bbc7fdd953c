/**
 * Every limit of QueueFS in one place, each with unit and reason. A limit that is hit has an error code of its own in the
 * error table; where a limit can be changed, the option's row in options.ts names these numbers as default and bounds.
 */

/** Bytes of one component of a queue name, in UTF-8: the NAME_MAX of common file systems (255). */
export const MAX_NAME_COMPONENT_BYTES = 255;
/** Components of one queue name: deep enough for people, shallow enough that a full path stays under PATH_MAX twice over. */
export const MAX_NAME_DEPTH = 32;
/** Bytes of a message id or request id, in UTF-8; ids are kept per message, so they must stay small. */
export const MAX_ID_BYTES = 255;
/** Bytes of one message unless the option says otherwise: 64 MiB, the body limit of AGFS servers. */
export const DEFAULT_MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** Upper bound of that option: 512 MiB less 1 MiB, what a Redis string can hold beside the message's header. */
export const MAX_MESSAGE_BYTES_BOUND = 511 * 1024 * 1024;
/** Items of one enqueue, ack, nack, release, extend, redrive or drop call: keeps one step short. */
export const MAX_BATCH_ITEMS = 10_000;
/** Messages handed out by one dequeue. */
export const MAX_DEQUEUE_LIMIT = 1_000;
/** Entries of one page of a listing. */
export const MAX_PAGE_ITEMS = 1_000;
/** Entries of one page of a listing, unless asked otherwise. */
export const DEFAULT_PAGE_ITEMS = 100;
/** Queues whose status is read in one snapshot by name; more are read by subtree. */
export const MAX_SNAPSHOT_QUEUES = 10_000;
/** Shortest lease, in milliseconds: below it a lease ends before the reply has arrived. */
export const MIN_LEASE_MS = 10;
/** Longest lease, in milliseconds: 7 days; a longer hold cannot be told from a lost one. */
export const MAX_LEASE_MS = 7 * 24 * 3600 * 1000;
/** Lease of a library dequeue unless asked otherwise, in milliseconds: 30 s; workers extend it. */
export const DEFAULT_LEASE_MS = 30_000;
/** Lease for plain consumers (files, command line, AGFS), who cannot extend with ease: 15 minutes, in milliseconds. */
export const DEFAULT_PLAIN_LEASE_MS = 15 * 60 * 1000;
/** Longest delay of a message or nack, in milliseconds: 366 days. */
export const MAX_DELAY_MS = 366 * 24 * 3600 * 1000;
/** Deliveries after which a message becomes a dead letter, unless the queue says otherwise. */
export const DEFAULT_MAX_DELIVERIES = 20;
/** Upper bound of that setting. */
export const MAX_MAX_DELIVERIES = 1_000_000;
/** Characters of an error text kept with a message (UTF-16 code units); the rest is cut. */
export const MAX_REASON_CHARACTERS = 4_096;
/** How long the answer to a message id or request id is remembered, in milliseconds: ten minutes. */
export const DEFAULT_REMEMBER_MS = 10 * 60 * 1000;
/** Upper bound of that option: 7 days. */
export const MAX_REMEMBER_MS = 7 * 24 * 3600 * 1000;
/** How often each live process looks for ended leases, in milliseconds. */
export const DEFAULT_SWEEP_INTERVAL_MS = 1_000;
/** Messages that one recovery step moves at most: bounds how long a step holds the store. */
export const RECOVERY_STEP_ITEMS = 500;
/** Bytes of a text that control files other than `enqueue` take: 64 KiB, far beyond any receipt and enough for hundreds of ids. */
export const MAX_CONTROL_TEXT_BYTES = 64 * 1024;
/** Bytes of a listing (`messages`, `.dead`) that may be read as a whole, into one array: 1 GiB. An open handle reads more, in parts. */
export const MAX_WHOLE_LISTING_BYTES = 1024 * 1024 * 1024;
/** Bytes behind the furthest read that an open listing keeps, for programs that step back a little: 1 MiB. */
export const LISTING_KEEP_BYTES = 1024 * 1024;
/** How often a waiter looks although nothing woke it, in milliseconds: the safety net under the hints of the store. */
export const DEFAULT_WAIT_POLL_MS = 1_000;
/** Time between two looks of one waiter in a storm of changes, in milliseconds, a few looks at once aside: 100 reads a second at most. */
export const WAIT_GAP_MS = 10;
/** Characters of a task id: short enough for one component of a path. */
export const MAX_TASK_ID_BYTES = 128;
/** Bytes of the type and of the stage of a task, in UTF-8: names for people, kept with each task. */
export const MAX_TASK_WORD_BYTES = 255;
/** Characters of the resource of a task: the longest path that common systems have. */
export const MAX_TASK_RESOURCE_CHARACTERS = 4_096;
/** Bytes of meta and of result of a task, each, as JSON in UTF-8: 64 KiB; what is larger belongs into a file. */
export const MAX_TASK_JSON_BYTES = 64 * 1024;
/** Longest time that an ended task is kept, in milliseconds: 366 days. */
export const MAX_TASK_KEEP_MS = 366 * 24 * 3600 * 1000;
/** How long a completed or cancelled task is kept unless told otherwise, in milliseconds: one day. */
export const DEFAULT_TASK_KEEP_MS = 24 * 3600 * 1000;
/** How long a failed task is kept unless told otherwise, in milliseconds: seven days, so that somebody sees it. */
export const DEFAULT_FAILED_TASK_KEEP_MS = 7 * 24 * 3600 * 1000;
/** Tasks that one page of a listing looks through at most: bounds a step whatever the filter. */
export const TASK_LISTING_STEP_ITEMS = 1_000;
/** Messages that one step of cancelling removes or looks through beyond those, and dead letters that one step of trying again takes. */
export const TASK_STEP_ITEMS = 500;
/** Tasks that a listing of the directory `/.tasks` names at most; more are listed page by page, by the library or the command line. */
export const MAX_LISTED_TASKS = 100_000;
/** Longest wait of one HTTP request for something to happen, in milliseconds: what proxies between usually let pass; clients ask again. */
export const MAX_LONG_POLL_MS = 60_000;
/** Client sessions of which an HTTP server remembers answers: 166 new clients a second for ten minutes. */
export const MAX_REMEMBERED_SESSIONS = 100_000;
/** Answers that an HTTP server remembers per client session, so that repeats after lost replies are safe; its client needs the last one. */
export const MAX_REMEMBERED_ANSWERS = 2;
/** Client sessions of one token among them, so that no token takes the place of all others. */
export const MAX_REMEMBERED_TOKEN_SESSIONS = 50_000;
/** Bytes of all answers that an HTTP server remembers before it refuses steps: 1 GiB. The answers of steps that run then may double it. */
export const MAX_REMEMBERED_ANSWER_BYTES = 1024 * 1024 * 1024;
/** Bytes of those of one token: 512 MiB, for each of a client's 16 connections 32 MiB. The answers of steps that run then may double it. */
export const MAX_REMEMBERED_TOKEN_BYTES = 512 * 1024 * 1024;
/** How long an HTTP server remembers the answers of a client session that asks nothing, in milliseconds: ten minutes, as stores remember ids. */
export const REMEMBER_SESSION_MS = 10 * 60 * 1000;
/** Bytes of calls that store messages and wait for the store, unless the option says otherwise: 512 MiB, so that a producer that never awaits is refused. */
export const DEFAULT_MAX_WAITING_BYTES = 512 * 1024 * 1024;
