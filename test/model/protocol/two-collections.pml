/*
 * Two queues in two slots, which no single step can read together. A worker stores the follow-up first and acks then, so a crash in between
 * makes a second copy. Work goes to and fro between the queues, HOPS times. The reader collects twice, slot by slot in whatever order, and
 * says complete when both collections were all zero.
 *
 *   (default)   and when the numbers of messages that ever arrived are the same in both: none
 *   NO_ARRIVALS without looking at those numbers: false completion
 */
#include "monitor.pml"

#define HOPS 3
/* Messages by queue and by the hops they still have to make. */
byte pendingIn[10] = 0;
byte processingIn[2] = 0;
byte pendingSum[2] = 0;
byte arrivals[2] = 0;
byte crashesLeft = 1;

inline arrive(queue, hops) {
  pendingIn[(queue) * 5 + (hops)]++;
  pendingSum[queue]++;
  arrivals[queue]++;
  workBegins()
}

active proctype producer() {
  atomic { arrive(0, HOPS); printf("producer: enqueues into queue 0, %d hops to go\n", HOPS) };
  atomic { arrive(1, 0); printf("producer: enqueues into queue 1, no hop to go\n") }
}

active proctype worker() {
  byte q, h;
end:
  do
  :: atomic {
       (pendingSum[0] + pendingSum[1] > 0);
       if
       :: q = 0
       :: q = 1
       fi;
       pendingSum[q] > 0;
       h = 0;
       do
       :: pendingIn[q * 5 + h] > 0 -> break
       :: else -> h++
       od;
       pendingIn[q * 5 + h]--; pendingSum[q]--; processingIn[q]++;
       printf("worker: takes a message of queue %d\n", q)
     };
     if
     :: h > 0 -> atomic { arrive(1 - q, h - 1); printf("worker: stores the follow-up in queue %d\n", 1 - q) }
     :: else
     fi;
     if
     :: atomic { crashesLeft > 0 -> crashesLeft--; printf("worker: crashes\n") };
        atomic { processingIn[q]--; pendingIn[q * 5 + h]++; pendingSum[q]++; printf("store: its message is pending again in queue %d\n", q) }
     :: atomic { processingIn[q]--; workEnds(); printf("worker: acks in queue %d\n", q) }
     fi;
     atomic { q = 0; h = 0 }
  od
}

byte arrived[2];

inline collect(slot) {
  seen = seen + pendingSum[slot] + processingIn[slot];
  printf("reader: collection %d, queue %d: %d unacked, %d ever arrived\n", round, slot, pendingSum[slot] + processingIn[slot], arrivals[slot]);
#ifndef NO_ARRIVALS
  if
  :: round == 1 -> arrived[slot] = arrivals[slot]
  :: round == 2 && arrived[slot] != arrivals[slot] -> seen++
  :: else
  fi
#endif
}

active proctype reader() {
  byte seen, first, round;
end:
  do
  :: atomic { lookBegins(); seen = 0; round = 1 };
     do
     :: round <= 2 ->
        atomic {
          if
          :: first = 0
          :: first = 1
          fi;
          collect(first)
        };
        atomic { collect(1 - first); round++ }
     :: else -> break
     od;
     if
     :: atomic { seen == 0 -> sayComplete() }
     :: else
     fi;
     atomic { arrived[0] = 0; arrived[1] = 0; first = 0; round = 0; seen = 0 }
  od
}
