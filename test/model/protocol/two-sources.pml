/*
 * Pending is counted in the store, what is in hand by a counter of the worker's process. A reader asks one after the other. However the
 * gaps are closed, two sources are two moments: each variant ends in a false completion.
 *
 *   (default)      the worker raises its counter in a step after the dequeue
 *   NO_GAP         it raises it in the same step; a crash still forgets the counter
 *   NO_CRASH       no crash happens
 *   COUNTER_FIRST  the reader asks for the counter before it asks the store
 */
#include "monitor.pml"

#define MESSAGES 2
mtype = { absent, pending, processing, acked };
mtype message[MESSAGES] = absent;
byte inHand = 0;

inline countPending(result) {
  d_step { result = (message[0] == pending) + (message[1] == pending) }
}

inline take() {
  if
  :: message[0] == pending -> m = 0
  :: message[1] == pending -> m = 1
  fi;
  message[m] = processing;
  printf("worker: takes message %d from the store\n", m)
}

active proctype producer() {
  byte i = 0;
  do
  :: i < MESSAGES -> atomic { message[i] = pending; workBegins(); printf("producer: enqueues message %d\n", i); i++ }
  :: else -> break
  od
}

active proctype worker() {
  byte m;
  bool mayCrash = true;
#ifdef NO_CRASH
  mayCrash = false;
#endif
end:
  do
#ifdef NO_GAP
  :: atomic { take(); inHand++ }
#else
  :: atomic { take() };
     atomic { inHand++; printf("worker: raises its counter\n") }
#endif
     if
     :: atomic { mayCrash -> mayCrash = false; inHand = 0; printf("worker: crashes, and its counter with it\n") };
        atomic { message[m] = pending; printf("worker: is started again, its message is pending again\n") }
     :: atomic { message[m] = acked; workEnds(); printf("worker: acks message %d\n", m) };
        atomic { inHand--; printf("worker: lowers its counter\n") }
     fi
  od
}

active proctype reader() {
  byte p, x;
end:
  do
  :: atomic { lookBegins(); p = 0; x = 0 };
#ifdef COUNTER_FIRST
     atomic { x = inHand; printf("reader: reads the counter, %d in hand\n", x) };
     atomic { countPending(p); printf("reader: reads the store, %d pending\n", p) }
#else
     atomic { countPending(p); printf("reader: reads the store, %d pending\n", p) };
     atomic { x = inHand; printf("reader: reads the counter, %d in hand\n", x) }
#endif
     if
     :: atomic { p + x == 0 -> sayComplete() }
     :: else
     fi
  od
}
