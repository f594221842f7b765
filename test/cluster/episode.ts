/** Injects one fault into a fleet while clients send commands, and returns the violations that the fault causes. */
import { setTimeout as after } from 'node:timers/promises'
import type { EmulatedHub } from '../../src/emulator/hub.ts'
import { until } from '../support/until.ts'
import { FLEET_FAULTS, type Scene } from './faults.ts'
import { type Member, memberRequests } from './members.ts'

export interface FleetEpisode {
  readonly fault: string
  /** The time from the beginning of the fault until every hub answers again, in milliseconds. */
  readonly gapMs: number
  readonly commands: number
  readonly confirmed: number
  readonly violations: readonly string[]
}

interface Asked {
  readonly at: number
  readonly hub: string
  readonly text: string
  readonly transaction: string
}

/** Time limit for a complete recovery, including an election in NATS. */
const CALM_MS = 120_000

export async function runEpisode(scene: Scene, fault: string): Promise<FleetEpisode> {
  const { fleet, random } = scene
  const cause = FLEET_FAULTS[fault]
  if (cause === undefined) throw new RangeError(`no fault ${fault}`)
  // Wait, because NATS may still be recovering from the previous fault.
  await scene.roster.catchUp()
  const epochBefore = scene.roster.epoch
  const startedAt = Date.now()
  const asked: Asked[] = []
  let going = true
  const asking = (async () => {
    while (going) {
      const hub = random.pick([...fleet.hubs.keys()])
      const text = `${fault} ${random.word()}`
      const transaction = random.word()
      asked.push({ at: Date.now(), hub, text, transaction })
      const payload = JSON.stringify({ text, transaction })
      await fleet.observer.publish(`hub2mqtt/${hub}/cmd/speak`, payload).catch(() => undefined)
      await after(random.int(10, 60))
    }
  })()
  let gaps: number[] = []
  try {
    const faulty = cause(scene)
    await after(100)
    // Send commands to each hub until one is answered, because a hub without an owner does not answer.
    const answering = Promise.all([...fleet.hubs.keys()].map((hub) => answered(scene, hub)))
    await faulty
    gaps = await answering
    await wellAgain(scene)
  } finally {
    going = false
    await asking
  }
  await after(500)
  await scene.roster.catchUp()
  return {
    fault,
    gapMs: Math.max(...gaps) - startedAt,
    commands: asked.length,
    ...judge(scene, asked, startedAt, epochBefore),
  }
}

const isOk = (answer: string) => answer.includes('"ok":true')
const transactionOf = (answer: string): unknown => Object(JSON.parse(answer)).transaction

/** Resolves to the time at which a hub answered a command that was sent after the fault had begun. */
async function answered({ fleet, members, random }: Scene, hub: string): Promise<number> {
  const result = `hub2mqtt/${hub}/result/get-apps`
  for (const endsAt = Date.now() + CALM_MS; Date.now() < endsAt; ) {
    const transaction = random.word()
    await fleet.observer.publish(`hub2mqtt/${hub}/cmd/get-apps`, JSON.stringify({ transaction })).catch(() => undefined)
    const isAnswered = () =>
      fleet.observer.seen.some(
        ({ topic, text }) => topic === result && isOk(text) && transactionOf(text) === transaction,
      )
    for (let tries = 0; tries < 10 && !isAnswered(); tries += 1) await after(50)
    if (isAnswered()) return Date.now()
  }
  throw new Error(`${hub} did not answer within ${CALM_MS} ms: ${JSON.stringify(lastLines(members))}`)
}

async function wellAgain({ fleet, members, roster }: Scene): Promise<void> {
  const count = members.length
  /** Returns how many hubs each member owns according to `hub2mqtt/fleet` and according to the hubs' messages. */
  const counts = () => {
    const owners = [...fleet.owners().values()]
    return Object.entries(fleet.payload('hub2mqtt/fleet').members ?? {}).map(([name, member]) => ({
      name,
      told: Number(Object(member).hubs),
      own: owners.filter((owner) => owner === name).length,
    }))
  }
  const silent = () =>
    [...fleet.hubs.keys(), 'bridge'].filter((name) => fleet.observer.last(`hub2mqtt/${name}/state`) !== 'online')
  const isWell = () =>
    fleet.payload('hub2mqtt/fleet').count === count &&
    counts().every(({ told, own }) => told === own) &&
    silent().length === 0
  await until('a whole fleet', isWell, CALM_MS).catch((error: unknown) => {
    const what = {
      fleet: fleet.payload('hub2mqtt/fleet'),
      counts: counts(),
      silent: silent(),
      epochs: roster.epochs.slice(-3),
      lines: lastLines(members),
    }
    throw new Error(`not whole after ${CALM_MS} ms: ${JSON.stringify(what)}`, { cause: error })
  })
}

function judge({ fleet, members, roster }: Scene, asked: readonly Asked[], startedAt: number, epochBefore: number) {
  const violations: string[] = []
  const said = new Map<string, number>()
  for (const hub of fleet.hubs.values()) for (const text of spoken(hub)) said.set(text, (said.get(text) ?? 0) + 1)
  const answers = fleet.observer.seen.filter(({ topic, at }) => at >= startedAt && topic.endsWith('/result/speak'))
  // Compare complete transactions, because one may be a prefix of another.
  const confirmations = new Map(answers.filter(({ text }) => isOk(text)).map(({ text }) => [transactionOf(text), text]))
  let confirmed = 0
  for (const { text, transaction, hub } of asked) {
    const times = said.get(text) ?? 0
    if (times > 1) violations.push(`"${text}" was said ${times} times by ${hub}`)
    const confirmation = confirmations.get(transaction)
    if (confirmation === undefined) continue
    confirmed += 1
    if (times === 0) violations.push(`"${text}" was confirmed, and ${hub} never said it: ${confirmation}`)
  }
  // The owner of a hub may change once per epoch. More changes mean that two members served the hub at once.
  const epochs = roster.epoch - epochBefore
  const requests = memberRequests(fleet, startedAt).filter(({ path }) => !path.startsWith('unsubscribe'))
  for (const [hub, ofHub] of Map.groupBy(requests, (one) => one.hub)) {
    const turns = turnsOf(ofHub)
    if (turns.length - 1 <= epochs) continue
    const periods = turns.map(
      ({ member, from, to, count }) => `${member}: ${from - startedAt}-${to - startedAt} (${count})`,
    )
    const rosters = roster.epochs.filter(({ epoch }) => epoch >= epochBefore)
    const known = rosters.map(({ at, epoch, members }) => `${epoch}: ${at - startedAt} ${members.join('')}`)
    violations.push(
      `${hub} went from member to member ${turns.length - 1} times in ${epochs} epochs: ${periods.join(', ')}; ${known.join(', ')}`,
    )
  }
  if (violations.length > 0) violations.push(JSON.stringify(lastLines(members)))
  return { confirmed, violations }
}

function lastLines(members: readonly Member[]): (readonly string[])[] {
  const isOfHubs = (line: string) => line.includes('"part":"apps"') || line.includes('"part":"audit"')
  return members.map(({ process }) => process.lines.filter((line) => !isOfHubs(line)).slice(-20))
}

function turnsOf(requests: readonly { readonly member: string; readonly at: number }[]) {
  const turns: { readonly member: string; readonly from: number; to: number; count: number }[] = []
  for (const { member, at } of requests) {
    const last = turns.at(-1)
    if (last?.member === member) {
      last.to = at
      last.count += 1
    } else turns.push({ member, from: at, to: at, count: 1 })
  }
  return turns
}

function spoken({ requests }: EmulatedHub): string[] {
  return requests.flatMap(({ operation, body, executed }) => {
    const text: unknown = Object(body).text
    return operation === 'say' && executed === true && typeof text === 'string' ? [text] : []
  })
}
