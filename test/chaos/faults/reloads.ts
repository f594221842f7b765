import { setTimeout as after } from 'node:timers/promises'
import { EmulatedHub } from '../../../src/emulator/hub.ts'
import { population } from '../../../src/emulator/population.ts'
import { appTopic, WRITES, write } from '../commands.ts'
import type { FileChanges } from '../surroundings.ts'
import { type Fault, type Faults, kindOf, type Scene } from './fault.ts'

const reload = kindOf({ hubWell: true, staysOnline: true, holds: ['bridge'] })

function changed(changes: (scene: Scene) => FileChanges | string): Fault['run'] {
  return async (scene) => {
    const { world, random } = scene
    await world.started()
    await world.reload(changes(scene))
    await after(random.int(500, 3000))
    await world.reload()
  }
}

/** Reloads a configuration that denies commands while these commands wait behind slow commands. */
function denied(changes: FileChanges, hubRequest: RegExp): Fault['run'] {
  return async (scene) => {
    const { world, random, load } = scene
    await world.started()
    world.hub.behave('slow-headers', { ms: 1200, operation: ['restartApp', 'setAppSetting'] })
    const subject = load.subject()
    if (subject !== undefined) {
      void load.issue(write(appTopic(subject.app, 'restart'), `restartApp ${subject.app}`))
      for (let left = 6; left > 0; left -= 1)
        void load.issue(WRITES.set({ ...subject, word: `${subject.word}x${left}` }))
    }
    await after(random.int(200, 700))
    await world.reload(changes)
    const denial: { from: number; to?: number; hubRequest: RegExp } = { from: Date.now(), hubRequest }
    world.denials.push(denial)
    // Wait longer than the delay that the checker allows, even on a busy machine.
    await after(random.int(4000, 5500))
    denial.to = Date.now()
    world.hub.behaveWell()
    await world.reload()
  }
}

const NUMBER = { type: 'number', min: 0, max: 100 }
const CYCLE = 'hubs: &h {home: *h}'

export const RELOADS: Faults = {
  'reload denies waiting commands': reload(
    denied({ commands: { deny: ['restart', 'set-setting'] } }, /^(restartApp|setAppSetting) /),
    { hubWell: false, stallMs: 500 },
  ),
  'reload turns on read-only': reload(denied({ commands: { read_only: true } }, /./), { hubWell: false, stallMs: 500 }),
  'reload excludes apps': reload((scene) => {
    const { world } = scene
    world.watch.leavesOut = true
    world.excuses.add('apps were left out')
    return changed(({ random }) => ({
      apps: random.pick([{ exclude: ['net.population.*'] }, { include: ['org.*'] }, { exclude: ['*'] }]),
    }))(scene)
  }),
  'reload publishes other settings': reload(
    changed(({ world, random }) => {
      const ids = random.shuffle([...world.hub.apps.keys()]).slice(0, 4)
      return { settings: { publish: Object.fromEntries(ids.map((id) => [id, { spare0: NUMBER, spare1: NUMBER }])) } }
    }),
  ),
  'reload adds and removes a hub': reload(async (scene) => {
    const { world } = scene
    await using second = await EmulatedHub.start({
      id: 'second',
      keys: { [world.secrets.key]: ['hub.app'] },
      apps: population(20),
      settleMs: 0,
    })
    await changed(() => ({ hubs: { second: { url: second.url, api_key: world.secrets.key } } }))(scene)
  }),
  'reload of a broken file': reload(
    changed(({ random }) =>
      random.pick(['', '{', 'hubs: 7', 'commands: {allow: [fly]}', 'log: {level: loud}', 'a: &a [*a, *a]', '\u0000']),
    ),
    { expectedErrors: /configuration/ },
  ),
  'reload of a file that contains itself': reload(
    changed(() => CYCLE),
    { expectedErrors: /configuration/ },
  ),
  'reloads in a row': reload(
    async ({ world, random }) => {
      await world.started()
      const levels = ['debug', 'info'] as const
      for (let left = random.int(10, 40); left > 0; left -= 1) {
        await world.configure({
          log: { level: random.pick(levels) },
          commands: random.chance(0.2) ? { deny: ['garbage-collect'] } : {},
        })
        world.bridge.signal('SIGHUP')
        await after(random.int(0, 60))
      }
      await world.reload()
    },
    { expectedErrors: /configuration/ },
  ),
}
