/*
 * A task of two queues' worth of messages: its producer adds and then seals, its workers forward and ack, anyone may crash, and readers look
 * whenever they like. It ends in the very step that settles its last message once it is sealed.
 *
 *   (default)          the rule of the product: none
 *   BEFORE_SEAL        an ack that finds nothing unacked ends the task although it is not sealed
 *   STATUS_AFTER_ACK   the status is saved in a step of its own after the last ack, and a crash may come between
 *   NO_PRODUCER_LEASE  nobody seals for a producer that died
 */
#define MESSAGES 2
mtype = { running, completed, failed };
mtype status = running;
byte unacked = 0;
byte pendingCount = 0;
byte added = 0;
bool isSealed = false;
bool producerFailed = false;
bool everythingAdded = false;
byte crashesLeft = 2;

inline endIfSettled() {
  if
#ifdef BEFORE_SEAL
  :: status == running && unacked == 0 ->
#else
  :: status == running && unacked == 0 && isSealed ->
#endif
     if
     :: producerFailed -> status = failed
     :: else -> status = completed
     fi;
     printf("store: the task has ended as %e\n", status)
  :: else
  fi
}

active proctype producer() {
  atomic { unacked++; pendingCount++; added++; printf("producer: makes the task with its first message\n") };
  do
  :: added < MESSAGES ->
     if
     :: atomic { crashesLeft > 0 -> crashesLeft--; printf("producer: dies\n"); goto gone }
     :: atomic {
          if
          /* A task that has ended takes no more work: the enqueue is refused, and the producer stops. */
          :: status == running -> unacked++; pendingCount++; added++; printf("producer: adds a message\n")
          :: else -> printf("producer: is refused\n"); goto gone
          fi
        }
     fi
  :: else -> break
  od;
  if
  :: atomic { crashesLeft > 0 -> crashesLeft--; printf("producer: dies before it seals\n") }
  :: atomic {
       if
       :: !isSealed -> isSealed = true; everythingAdded = true; printf("producer: seals\n"); endIfSettled()
       :: else -> printf("producer: its seal comes too late\n")
       fi
     }
  fi;
gone: skip
}

/* Whatever live process: the lease of a producer may end while the producer lives, for it may be slow. */
active proctype recovery() {
#ifdef NO_PRODUCER_LEASE
  skip
#else
end:
  if
  :: atomic { added > 0 && !isSealed -> isSealed = true; producerFailed = true; printf("recovery: the producer's lease has ended, seals with a failure\n"); endIfSettled() }
  :: isSealed
  fi
#endif
}

active [2] proctype worker() {
  bool hasForwarded = false;
end:
  do
  :: atomic { pendingCount > 0 -> pendingCount--; printf("worker %d: takes a message\n", _pid) };
     if
     :: atomic { crashesLeft > 0 -> crashesLeft--; pendingCount++; printf("worker %d: crashes; the message is pending again\n", _pid) }
     :: atomic { !hasForwarded -> hasForwarded = true; pendingCount++; printf("worker %d: acks and forwards in one step\n", _pid) }
#ifdef STATUS_AFTER_ACK
     :: atomic { unacked--; printf("worker %d: acks\n", _pid) };
        if
        :: atomic { crashesLeft > 0 -> crashesLeft--; printf("worker %d: crashes before it saves the status\n", _pid) }
        :: atomic { endIfSettled() }
        fi
#else
     :: atomic { unacked--; printf("worker %d: acks\n", _pid); endIfSettled() }
#endif
     fi
  od
}

/* Readers look in no particular order; between two looks of one reader all others may have looked. */
active [2] proctype reader() {
  mtype seen = running;
  byte looks = 0;
end:
  do
  :: atomic {
       /* Two looks show every pair of states that one reader can see; with no end of them nobody would ever be idle. */
       looks < 2 -> looks++;
       /* Stable (C5 b): what ended stays as it ended. */
       assert(seen == running || seen == status);
       seen = status;
       /* Safe (C5 a, d): nothing is unacked, and the producer has said that it adds no more, or is known to have failed. */
       assert(seen == running || (unacked == 0 && isSealed));
       assert(seen != completed || everythingAdded);
#ifdef REACHABLE
       assert(seen != REACHABLE)
#endif
     }
  od
}

/* Final (C5 c): once nobody has anything to do, the task has ended, whoever died on the way. */
active proctype finale() {
end:
  timeout -> 
#ifndef REACHABLE
  printf("finale: nobody has anything to do any more, and the task is %e\n", status);
  assert(status != running)
#endif
}
