import type { CheckerName } from '../check.ts'

export interface Plant {
  readonly fault: string
  /** At least one of these checkers must report a violation. */
  readonly caughtBy: readonly (CheckerName | 'ghosts' | 'missing' | 'wrong')[]
  /** The mean time between two actions; short if the bug needs a high load. */
  readonly paceMs?: number
  /** Whether short runs leave the bug out, because its detection takes long or another bug tests the same checker. */
  readonly longRuns?: true
  /** Time limit until the retained messages match the hub's state; short if the bug prevents that. */
  readonly timeoutMs?: number
  readonly env?: Readonly<Record<string, string>>
}

export const PLANTS: Readonly<Record<string, Plant>> = {
  'retried-writes': { fault: 'hub executes and resets', caughtBy: ['executed twice'], longRuns: true },
  'retained-accepted': {
    fault: 'nothing for a while',
    caughtBy: ['executed unasked', 'bad input accepted'],
    paceMs: 8,
    longRuns: true,
  },
  'no-sweep': { fault: 'orphans planted', caughtBy: ['ghosts'], longRuns: true },
  'transient-left': { fault: 'retained on event topics', caughtBy: ['ghosts'] },
  'stale-resend': { fault: 'broker long away', caughtBy: ['stale state'], timeoutMs: 15_000 },
  'logged-key': { fault: 'bridge ended', caughtBy: ['secret shown'] },
  'logged-setting': { fault: 'nothing for a while', caughtBy: ['secret shown'], longRuns: true },
  'lost-last-update': { fault: 'broker slow', caughtBy: ['wrong'], paceMs: 8 },
  'lost-last-event': { fault: 'nothing for a while', caughtBy: ['wrong', 'missing', 'ghosts'] },
  'hasty-ok': { fault: 'hub resets before executing', caughtBy: ['confirmed, not executed'] },
  'forgotten-transactions': { fault: 'nothing for a while', caughtBy: ['executed twice'] },
  'session-kept': { fault: 'broker refuses connections', caughtBy: ['executed unasked'] },
  'no-deadline': { fault: 'hub crawls', caughtBy: ['executed late'], paceMs: 8 },
  'lost-answers': { fault: 'nothing for a while', caughtBy: ['not answered'] },
  'ok-by-existence': { fault: 'installs cut', caughtBy: ['confirmed, not executed'], longRuns: true },
  'gateway-believed': {
    fault: 'gateway answers writes in place of the hub',
    caughtBy: ['confirmed, not executed'],
    paceMs: 8,
    longRuns: true,
  },
  'odd-is-failed': { fault: 'hub answers writes oddly', caughtBy: ['executed, called failed'], paceMs: 8 },
  'gone-by-404': { fault: 'removals cut, then a 404 page', caughtBy: ['false ok'] },
  'errors-believed': { fault: 'hub starts up for long', caughtBy: ['wiped'] },
  'nobody-is-another': { fault: 'hub does not identify itself', caughtBy: ['wiped'], longRuns: true },
  'updated-after-end': { fault: 'updates after the removal of an app', caughtBy: ['resurrected'] },
  'one-short-queue': { fault: '1,100 pings at once', caughtBy: ['not answered'], longRuns: true },
  'online-when-all-is-sent': {
    fault: 'empty broker accepts packets of 2,000 bytes',
    caughtBy: ['kept offline'],
    longRuns: true,
  },
  'rights-asked-once': { fault: 'reload denies waiting commands', caughtBy: ['denied executed'] },
  'any-spelling': { fault: 'commands in odd spellings', caughtBy: ['bad input accepted', 'executed unasked'] },
  'both-active': { fault: 'two bridges with different client ids', caughtBy: ['executed twice', 'answered twice'] },
  'foreign-swept': { fault: 'topics of other programs', caughtBy: ['foreign touched'] },
  'key-for-anybody': { fault: 'another server at the address', caughtBy: ['key shown'], longRuns: true },
  'key-cut': { fault: 'the key in long texts', caughtBy: ['secret shown'], longRuns: true },
  'long-memory': { fault: 'hours pass', caughtBy: ['remembered too long'] },
  'asleep-unseen': { fault: 'bridge suspended for long', caughtBy: ['executed late'], longRuns: true },
  'leaves-late': {
    fault: 'hub slow to show who it is',
    caughtBy: ['executed late'],
    env: { HUB_TIMEOUT: '8s' },
    longRuns: true,
  },
  'unhandled-rejection': { fault: 'nothing for a while', caughtBy: ['process'] },
}
