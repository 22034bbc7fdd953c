/*
 * What is really true, kept beside every model: how many pieces of work are unfinished. No process of a model decides by it. A reader that
 * says "complete" is right when nothing was unfinished at some moment of its look, which is property C1 (over several queues: C2).
 *
 * With -DREACHABLE the assertion is turned round: a reader that says "complete" once all work is done is then reported as an error, so that
 * a model in which nobody ever gets there cannot pass for a correct one.
 */
byte unfinished = 0;
byte everBegun = 0;
bool idleSeen = true;

inline workBegins() { unfinished++; everBegun++ }

inline workEnds() {
  unfinished--;
  if
  :: unfinished == 0 -> idleSeen = true
  :: else
  fi
}

inline lookBegins() { idleSeen = (unfinished == 0) }

inline sayComplete() {
  printf("reader: says complete; really unfinished now: %d\n", unfinished);
#ifdef REACHABLE
  assert(!(unfinished == 0 && everBegun >= 2))
#else
  assert(idleSeen)
#endif
}
