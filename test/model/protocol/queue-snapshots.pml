/*
 * Two queues in one store. Acknowledge and forward is one step; a worker may crash, and its message is then pending again.
 *
 *   (default)   the reader asks queue by queue, in whatever order: false completion
 *   SNAPSHOT    it reads pending and processing of all queues in one step: none
 */
#include "monitor.pml"

byte pendingIn[2] = 0;
byte processingIn[2] = 0;
byte crashesLeft = 2;

active proctype producer() {
  atomic { pendingIn[0]++; workBegins(); printf("producer: enqueues into queue 0\n") };
  atomic { pendingIn[0]++; workBegins(); printf("producer: enqueues into queue 0\n") }
}

active [2] proctype worker() {
  byte q;
end:
  do
  :: atomic {
       if
       :: pendingIn[0] > 0 -> q = 0
       :: pendingIn[1] > 0 -> q = 1
       fi;
       pendingIn[q]--; processingIn[q]++;
       printf("worker %d: takes a message of queue %d\n", _pid, q)
     };
     if
     :: atomic { crashesLeft > 0 -> crashesLeft--; printf("worker %d: crashes\n", _pid) };
        atomic { processingIn[q]--; pendingIn[q]++; printf("store: its message is pending again in queue %d\n", q) }
     :: atomic { q == 0 -> processingIn[0]--; pendingIn[1]++; printf("worker %d: acks and forwards to queue 1, in one step\n", _pid) }
     :: atomic { q == 1 -> processingIn[1]--; workEnds(); printf("worker %d: acks in queue 1\n", _pid) }
     fi
  od
}

active proctype reader() {
  byte first, seen;
end:
  do
#ifdef SNAPSHOT
  :: atomic {
       lookBegins();
       seen = pendingIn[0] + processingIn[0] + pendingIn[1] + processingIn[1];
       printf("reader: reads both queues, %d unacked\n", seen)
     }
#else
  :: atomic {
       lookBegins();
       if
       :: first = 0
       :: first = 1
       fi;
       seen = pendingIn[first] + processingIn[first];
       printf("reader: reads queue %d, %d unacked\n", first, seen)
     };
     atomic {
       seen = seen + pendingIn[1 - first] + processingIn[1 - first];
       printf("reader: reads queue %d too, %d unacked together\n", 1 - first, seen)
     }
#endif
     if
     :: atomic { seen == 0 -> sayComplete() }
     :: else
     fi
  od
}
