/** One fault in a fleet, with people who go on asking meanwhile, and what was wrong about it. */
import type { EmulatedHub } from '../../src/emulator/hub.ts'
import { until } from '../support/until.ts'
import { FLEET_FAULTS, type Scene } from './faults.ts'
import type { Members } from './members.ts'

export interface FleetEpisode {
  readonly fault: string
  /** From the beginning of the fault until every hub answers again; the fault itself is part of it. */
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

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
/** For everything to be well again, NATS' own election included. */
const CALM_MS = 120_000

export async function runEpisode(scene: Scene, fault: string): Promise<FleetEpisode> {
  const { world, random } = scene
  const found = FLEET_FAULTS[fault]
  if (found === undefined) throw new RangeError(`no fault ${fault}`)
  const startedAt = Date.now()
  const epochBefore = epochOf(world)
  const asked: Asked[] = []
  let going = true
  const asking = (async () => {
    while (going) {
      const hub = random.pick([...world.hubs.keys()])
      const text = `${fault} ${random.word()}`
      const transaction = random.word()
      asked.push({ at: Date.now(), hub, text, transaction })
      const payload = JSON.stringify({ text, transaction })
      await world.observer.publish(`hub2mqtt/${hub}/cmd/speak`, payload).catch(() => undefined)
      await after(random.int(10, 60))
    }
  })()
  const faulty = found.run(scene)
  await after(100)
  // Each hub until it has answered: who asks a hub without an owner gets no answer, and asks again.
  const answering = Promise.all([...world.hubs.keys()].map((hub) => answered(scene, hub)))
  await faulty
  const gaps = await answering
  await wellAgain(scene)
  going = false
  await asking
  await after(500)
  return {
    fault,
    gapMs: Math.max(...gaps) - startedAt,
    commands: asked.length,
    ...judge(scene, asked, startedAt, epochBefore),
  }
}

/** When a hub answered a question that was asked after the fault had begun. */
async function answered({ world, random }: Scene, hub: string): Promise<number> {
  const result = `hub2mqtt/${hub}/result/get-apps`
  for (const endsAt = Date.now() + CALM_MS; Date.now() < endsAt; ) {
    const transaction = random.word()
    await world.observer.publish(`hub2mqtt/${hub}/cmd/get-apps`, JSON.stringify({ transaction })).catch(() => undefined)
    const isAnswered = () =>
      world.observer.seen.some(
        ({ topic, text }) => topic === result && text.includes(transaction) && text.includes('"ok":true'),
      )
    for (let tries = 0; tries < 10 && !isAnswered(); tries += 1) await after(50)
    if (isAnswered()) return Date.now()
  }
  throw new Error(`${hub} did not answer within ${CALM_MS} ms`)
}

async function wellAgain({ world }: Scene): Promise<void> {
  const count = world.processes.length
  await until(
    'a whole fleet',
    () => {
      const fleet = Object(world.payload('hub2mqtt/fleet'))
      const owners = [...world.owners().values()]
      const counted = Object.entries(Object(fleet.members)).every(
        ([name, member]) => Object(member).hubs === owners.filter((owner) => owner === name).length,
      )
      const online = [...world.hubs.keys(), 'bridge'].every((name) => world.text(`hub2mqtt/${name}/state`) === 'online')
      return fleet.count === count && counted && online
    },
    CALM_MS,
  )
}

/** Not each of them is told: of several in a row only the last one. */
const epochOf = (world: Members) => Number(Object(world.payload('hub2mqtt/fleet')).epoch)

function judge({ world }: Scene, asked: readonly Asked[], startedAt: number, epochBefore: number) {
  const violations: string[] = []
  const said = new Map<string, number>()
  for (const hub of world.hubs.values()) for (const text of spoken(hub)) said.set(text, (said.get(text) ?? 0) + 1)
  const answers = world.observer.seen.filter(({ topic, at }) => at >= startedAt && topic.endsWith('/result/speak'))
  let confirmed = 0
  for (const { text, transaction, hub } of asked) {
    const times = said.get(text) ?? 0
    if (times > 1) violations.push(`"${text}" was said ${times} times by ${hub}`)
    const isOk = answers.some((one) => one.text.includes(transaction) && one.text.includes('"ok":true'))
    if (isOk) confirmed += 1
    if (isOk && times === 0) violations.push(`"${text}" was confirmed, and ${hub} never said it`)
  }
  // A hub goes from one member to another once in an epoch at most: more often, two had it at a time.
  const epochs = epochOf(world) - epochBefore
  const requests = world.asked(startedAt).filter(({ path }) => !path.startsWith('unsubscribe'))
  for (const [hub, ofHub] of Map.groupBy(requests, (one) => one.hub)) {
    const switches = ofHub.filter(({ member }, i) => i > 0 && ofHub[i - 1]?.member !== member).length
    if (switches > epochs) violations.push(`${hub} went from member to member ${switches} times in ${epochs} epochs`)
  }
  return { confirmed, violations }
}

function spoken({ requests }: EmulatedHub): string[] {
  return requests.flatMap(({ operation, body, executed }) => {
    const text: unknown = Object(body).text
    return operation === 'say' && executed === true && typeof text === 'string' ? [text] : []
  })
}
