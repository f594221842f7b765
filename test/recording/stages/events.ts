import { BLINDS, HUE, ODD, PUMP, SAUNA } from '../config.ts'
import type { Theatre } from '../theatre.ts'

export async function events(theatre: Theatre): Promise<void> {
  const home = theatre.hubs.home.emulated
  const attic = theatre.hubs.attic.emulated
  /** Waits after each event, because the bridge publishes only the last of several quick states. */
  const happen = async (...all: (() => void)[]) => {
    for (const one of all) {
      one()
      await theatre.rest()
    }
  }
  await theatre.stage('an app crashes and recovers', async () => {
    await happen(
      () => home.crash(HUE, 'Error: it fell over'),
      () => home.crash(HUE, 'Error: and again'),
      () => home.recover(HUE),
    )
    await theatre.walk('home', 1)
    await happen(
      () => attic.recover(ODD.id),
      () => attic.crash(ODD.id, `Error: ${'long '.repeat(300)}`),
    )
  })
  await theatre.stage('an app changes', async () => {
    await happen(
      () => home.change(HUE, { usage: { cpu: 0.3, mem: 70_000_000 } }),
      () => home.change(HUE, { updateAvailable: { version: '7.1.0', permissions: [] } }),
      () => home.change(HUE, { version: '7.1.0', updateAvailable: null }),
      () => home.change(HUE, { name: 'Lumen Lights Pro', autoupdate: false }),
      () => home.change(HUE, { state: 'starting', channel: undefined }),
      () => home.change(HUE, { state: 'running', channel: 'stable' }),
      () => attic.change(BLINDS, { updateAvailable: true }),
      () => attic.enable(BLINDS),
    )
    await theatre.walk('attic', 1)
    await happen(() => attic.disable(BLINDS))
    await theatre.walk('attic', 1)
  })
  await theatre.stage('an app comes and goes', async () => {
    await happen(() => home.install({ id: SAUNA, name: 'Sauna', version: '2.0.1', settings: { target: 82 } }))
    await theatre.pass(2_500)
    await happen(() => home.uninstall(SAUNA))
  })
  await theatre.stage('changes that no event told of are read', async () => {
    home.change(PUMP, { version: '2.6.0', name: 'Heat Pump 2' }, { silent: true })
    home.install({ id: SAUNA, name: 'Sauna', version: '2.0.1' }, { silent: true })
    await theatre.ask('home/cmd/refresh')
    home.uninstall(SAUNA, { silent: true })
    await theatre.pass(2_500)
    await theatre.ask('home/cmd/refresh')
  })
}
