/** Tests the imported flows of config/node-red with a real Node-RED, a real broker, the bridge and an emulated hub. */
import { globSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { World } from '../support/world.ts'
import { installNodeRed } from './support/installation.ts'
import { NodeRed } from './support/node-red.ts'

const installation = await installNodeRed()
afterAll(() => installation?.[Symbol.asyncDispose]())

const HUE = 'com.athom.hue'
const OTHER = 'net.lindqvist.heatpump'

describe.skipIf(installation === undefined)('the flows of config/node-red, imported into Node-RED', () => {
  let world: World
  let red: NodeRed

  beforeAll(async () => {
    if (installation === undefined) throw new Error('there is no Node-RED')
    world = await World.start()
    const flows = globSync('*.json', { cwd: 'config/node-red' })
    expect(flows).toHaveLength(3)
    red = await NodeRed.start({ installation, flows, brokerPort: world.broker.port, env: { DELAY_SECONDS: '0' } })
  })
  afterAll(async () => {
    await red?.[Symbol.asyncDispose]()
    await world?.[Symbol.asyncDispose]()
  })

  const restarts = (app: string) =>
    world.hub.requests.filter(({ operation, path }) => operation === 'restartApp' && path.includes(app)).length
  const runs = (app: string) => until('the app to run', () => world.hub.apps.get(app)?.state === 'running')

  it('restart an app by a button, and report it', async () => {
    await red.press('hub2mqtt-button-press')
    await red.process.untilLine(`${HUE} was restarted`)
    expect(restarts(HUE)).toBe(1)
    await runs(HUE)
  })

  it('report the reason if the restart was refused', async () => {
    world.hub.behave('answer-status', { status: 500, operation: 'restartApp', times: 1 })
    await red.press('hub2mqtt-button-press')
    await red.process.untilLine(`${HUE} was not restarted: `)
  })

  it('report a crash with its message, restart the app, and report its recovery', async () => {
    const before = restarts(OTHER)
    world.hub.crash(OTHER, 'Error: no water')
    await red.process.untilLine(`${OTHER} has crashed: Error: no water`)
    await red.process.untilLine(`${OTHER} has recovered`)
    expect(restarts(OTHER)).toBe(before + 1)
  })

  it('restart an app that keeps crashing three times, then give up and report it', async () => {
    const before = restarts(HUE)
    for (let count = 1; count <= 3; count += 1) {
      world.hub.crash(HUE, `Error: crash ${count}`)
      await until('the restart', () => restarts(HUE) === before + count)
      await runs(HUE)
    }
    world.hub.crash(HUE, 'Error: once more')
    await red.process.untilLine(`${HUE} keeps crashing: it is no longer restarted (Error: once more)`)
    // Let the other app crash, because it has restarts left. A wrong restart of the first app would arrive earlier.
    const ofOther = restarts(OTHER)
    world.hub.crash(OTHER)
    await until('the restart', () => restarts(OTHER) === ofOther + 1)
    expect(restarts(HUE)).toBe(before + 3)
  })

  it('leave no warning in the log', () => expect(red.complaints()).toEqual([]))
})
