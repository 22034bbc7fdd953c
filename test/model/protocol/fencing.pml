/*
 * One message and two workers. A lease may end at any moment, the worker that held it knows nothing of it and settles later, by ack or nack.
 *
 *   (default)  a worker settles by the receipt of its delivery, and a stale one changes nothing: none
 *   BARE_ID    it settles by the id of the message, whoever holds it now: the ack of one worker ends the delivery of the other
 *
 * Right means: a reader that says "complete" does so when the one delivery that counted was acked by its own worker, and of the message there
 * are never two deliveries that both count.
 */
mtype = { pending, processing, acked };
mtype message = pending;
byte receipt = 0;
byte leaseEndsLeft = 2;
byte nacksLeft = 1;
/* Whose delivery counts: it has neither been settled by its worker, nor has its lease ended, nor has the worker died. 0 for nobody. */
byte counts = 0;
bool ackedByHolder = false;

#ifdef BARE_ID
#define isCurrent (message == processing)
#else
#define isCurrent (message == processing && mine == receipt)
#endif

active [2] proctype worker() {
  byte mine = 0;
end:
  do
  :: atomic {
       message == pending ->
       message = processing; receipt++; mine = receipt;
       printf("worker %d: takes the message with receipt %d\n", _pid, mine);
       assert(counts == 0);
       counts = mine
     };
     if
     :: atomic {
          if
          :: isCurrent -> message = acked; ackedByHolder = (counts == mine); printf("worker %d: acks delivery %d: acked\n", _pid, mine)
          :: else -> printf("worker %d: acks delivery %d: stale\n", _pid, mine)
          fi;
          if
          :: counts == mine -> counts = 0
          :: else
          fi
        }
     :: atomic {
          nacksLeft > 0 -> nacksLeft--;
          if
          :: isCurrent -> message = pending; printf("worker %d: nacks delivery %d: pending again\n", _pid, mine)
          :: else -> printf("worker %d: nacks delivery %d: stale\n", _pid, mine)
          fi;
          if
          :: counts == mine -> counts = 0
          :: else
          fi
        }
     :: atomic { leaseEndsLeft > 0 && counts == mine -> printf("worker %d: dies\n", _pid); counts = 0; leaseEndsLeft--; message = pending; printf("store: the lease of delivery %d has ended, the message is pending again\n", mine) };
     fi;
     mine = 0
  od
}

active proctype recovery() {
end:
  do
  :: atomic {
       message == processing && leaseEndsLeft > 0 ->
       leaseEndsLeft--; message = pending; counts = 0;
       printf("store: the lease of delivery %d has ended, the message is pending again\n", receipt)
     }
  od
}

active proctype reader() {
end:
  do
  :: atomic {
       message == acked ->
       printf("reader: says complete; delivery that still counts: %d\n", counts);
#ifdef REACHABLE
       assert(false)
#else
       assert(counts == 0 && ackedByHolder)
#endif
     };
     break
  od
}
