/** The routes of the set-up page, which are there while no hub is configured. */
import type * as v from 'valibot'
import * as protocol from './protocol.ts'
import { type ApiReply, type ApiRequest, readJson, refuse } from './reply.ts'
import type { Route } from './routes.ts'
import type { Services } from './services.ts'
import { type SetupDoor, withSetup } from './setup.ts'

const SET_UP: Route['answers'] = {
  400: { doc: 'It cannot be a configuration.', schema: protocol.API_ERROR },
  404: { doc: 'A hub is configured.', schema: protocol.API_ERROR },
  409: { doc: 'Something else has come first, or wins.', schema: protocol.API_ERROR },
  429: { doc: 'Too many tests; `Retry-After` says for how long.', schema: protocol.API_ERROR },
}

function setUpRoute<S extends v.GenericSchema>(
  schema: S,
  act: (setup: SetupDoor, given: v.InferOutput<S>) => Promise<object>,
) {
  return async ({ setup }: Services, { body }: ApiRequest): Promise<ApiReply> => {
    const given = readJson(schema, body)
    if (given === undefined) return refuse(400, 'invalid', 'Expected the fields that the documentation names.')
    return await withSetup(setup, (door) => act(door, given))
  }
}

export const SETUP_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: 'api/setup',
    access: 'full',
    doc: 'While no hub is configured: the options of the set-up. Searches for hubs for up to three seconds.',
    answers: { 200: { doc: 'Where it begins.', schema: protocol.SETUP }, ...SET_UP },
    slow: true,
    run: ({ setup }) => withSetup(setup, (door) => door.look()),
  },
  {
    method: 'POST',
    path: 'api/setup/test-hub',
    access: 'full',
    doc: 'While no hub is configured: tests a hub as `hub2mqtt doctor` does. One test at a time, 20 a minute.',
    request: protocol.SETUP_HUB,
    answers: { 200: { doc: 'The result.', schema: protocol.SETUP_TEST }, ...SET_UP },
    slow: true,
    run: setUpRoute(protocol.SETUP_HUB, (setup, hub) => setup.testHub(hub)),
  },
  {
    method: 'POST',
    path: 'api/setup/test-broker',
    access: 'full',
    doc: 'While no hub is configured: tests a broker the same way.',
    request: protocol.SETUP_BROKER,
    answers: { 200: { doc: 'The result.', schema: protocol.SETUP_TEST }, ...SET_UP },
    slow: true,
    run: setUpRoute(protocol.SETUP_BROKER, (setup, broker) => setup.testBroker(broker)),
  },
  {
    method: 'POST',
    path: 'api/setup/apply',
    access: 'full',
    doc: 'While no hub is configured: writes the configuration file and starts the bridge, or returns the lines to add.',
    request: protocol.SETUP_APPLY,
    answers: { 200: { doc: 'What was written, or is to be.', schema: protocol.SETUP_DONE }, ...SET_UP },
    slow: true,
    async run(services, request) {
      const reply = await setUpRoute(protocol.SETUP_APPLY, (setup, wanted) => setup.apply(wanted))(services, request)
      return { ...reply, sent: () => services.setup?.answered() }
    },
  },
]
