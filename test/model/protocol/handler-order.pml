/*
 * A handler with a follow-up, and a reader with one atomic snapshot of both queues.
 *
 *   (default)      acks and forwards in one step: none
 *   ENQUEUE_FIRST  enqueues the follow-up, then acks: none, at the price of a second follow-up after a crash
 *   ACK_FIRST      acks, then enqueues the follow-up: false completion, however atomic the snapshot; and a crash loses the follow-up
 *
 * With -DLOSS the assertion is that no work is lost: it looks at the end of all processes, and not at the reader.
 */
#include "monitor.pml"

byte pendingIn[2] = 0;
byte processingIn[2] = 0;
byte crashesLeft = 2;

active proctype producer() {
  atomic { pendingIn[0]++; workBegins(); printf("producer: enqueues into queue 0\n") };
  atomic { pendingIn[0]++; workBegins(); printf("producer: enqueues into queue 0\n") }
}

active proctype handler() {
end:
  do
  :: atomic { pendingIn[0] > 0 -> pendingIn[0]--; processingIn[0]++; printf("handler: takes a message of queue 0\n") };
     if
     :: atomic { crashesLeft > 0 -> crashesLeft--; processingIn[0]--; pendingIn[0]++; printf("handler: crashes; the message is pending again\n") }
#ifdef ACK_FIRST
     :: atomic { processingIn[0]--; printf("handler: acks, and has the follow-up in hand\n") };
        if
        :: atomic { crashesLeft > 0 -> crashesLeft--; printf("handler: crashes, and nobody has the follow-up\n") }
        :: atomic { pendingIn[1]++; printf("handler: enqueues the follow-up\n") }
        fi
#else
#ifdef ENQUEUE_FIRST
     :: atomic { pendingIn[1]++; workBegins(); printf("handler: enqueues the follow-up\n") };
        if
        :: atomic { crashesLeft > 0 -> crashesLeft--; processingIn[0]--; pendingIn[0]++; printf("handler: crashes; the message is pending again\n") }
        :: atomic { processingIn[0]--; workEnds(); printf("handler: acks\n") }
        fi
#else
     :: atomic { processingIn[0]--; pendingIn[1]++; printf("handler: acks and forwards in one step\n") }
#endif
#endif
     fi
  od
}

active proctype consumer() {
end:
  do
  :: atomic { pendingIn[1] > 0 -> pendingIn[1]--; processingIn[1]++; printf("consumer: takes a message of queue 1\n") };
     if
     :: atomic { crashesLeft > 0 -> crashesLeft--; processingIn[1]--; pendingIn[1]++; printf("consumer: crashes; the message is pending again\n") }
     :: atomic { processingIn[1]--; workEnds(); printf("consumer: acks in queue 1\n") }
     fi
  od
}

#ifdef LOSS
active proctype finale() {
end:
  timeout -> atomic { printf("finale: both queues are empty, really unfinished: %d\n", unfinished); assert(unfinished == 0) }
}
#else
active proctype reader() {
  byte seen;
end:
  do
  :: atomic {
       lookBegins();
       seen = pendingIn[0] + processingIn[0] + pendingIn[1] + processingIn[1];
       if
       :: seen == 0 -> sayComplete()
       :: else
       fi
     }
  od
}
#endif
