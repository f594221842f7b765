/** Valid and nearly valid payloads. They do not depend on the command table. */

export const APP = 'the.app'
export const app = (command: string, id = APP) => `home/app/${id}/cmd/${command}`

/** A topic, and a valid payload for this topic. */
export type Right = readonly [topic: string, payload: string]

export const OBJECTS: readonly Right[] = [
  [app('enable'), '{}'],
  [app('disable'), '{"message":"m"}'],
  [app('restart'), '{"message":"m"}'],
  [app('garbage-collect'), '{}'],
  [app('get'), '{}'],
  [app('get-std'), '{"message":"m"}'],
  [app('get-settings'), '{}'],
  [app('get-locales'), '{}'],
  [app('update'), '{"autoupdate":true,"channel":"beta"}'],
  [app('guard'), '{"snooze":"30m"}'],
  [app('install'), '{"channel":"beta"}'],
  [app('uninstall'), `{"confirm":"${APP}"}`],
  [app('get-setting/one'), '{}'],
  [app('get-setting'), '{"name":"one"}'],
  [app('set-setting'), '{"name":"one","value":1}'],
  [app('unset-setting/one'), '{}'],
  [app('unset-setting'), '{"name":"one"}'],
  ['home/cmd/get-apps', '{"filter":{"enabled":true}}'],
  ['home/cmd/install', '{"id":"com.harborlight.irrigation"}'],
  ['home/cmd/update-all', '{}'],
  ['home/cmd/speak', '{"text":"Hello"}'],
  ['home/cmd/call', '{"item":"system","path":"/ping"}'],
  ['home/cmd/refresh', '{}'],
  ['bridge/cmd/log-level', '{"level":"debug","for":"10m"}'],
  ['bridge/cmd/ping', '{}'],
]
export const WORDS: readonly Right[] = [
  [app('autoupdate'), 'ON'],
  ['bridge/cmd/log-level', 'debug'],
]
export const RAW: readonly Right[] = [[app('set-setting/one'), '1']]
export const ANY = [...OBJECTS, ...WORDS, ...RAW] as const
export const ON_APP = OBJECTS.filter(([topic]) => topic.startsWith('home/app/'))

const wrong = (topic: string, ...payloads: string[]) => payloads.map((payload): Right => [topic, payload])

/** Commands with payload types that they do not accept. */
export const WRONG_TYPES: readonly Right[] = [
  ...wrong(app('update'), '{"autoupdate":"true"}', '{"autoupdate":1}', '{"channel":1}', '{"channel":""}', '{}', ''),
  ...wrong(app('guard'), '{"enabled":"ON"}', '{"snooze":30}', '{"snooze":"999ms"}', '{"snooze":"9000h"}'),
  ...wrong(app('guard'), '{"forget":false}', '{}', ''),
  ...wrong(app('install'), '{"channel":null}'),
  ...wrong(app('restart'), '{"message":5}'),
  ...wrong(app('uninstall'), '{"confirm":1}', '{"confirm":true}', '{}', `{"confirm":"${APP.toUpperCase()}"}`),
  ...wrong(app('uninstall'), `{"confirm":"${APP}","purge_settings":"true"}`),
  ...wrong(app('get-setting'), '{"name":5}', '{"name":""}', ''),
  ...wrong(app('set-setting'), '{"name":"one"}', '{"value":1}'),
  ...wrong(app('unset-setting'), '{"name":["one"]}'),
  ...wrong('home/cmd/install', '{"id":5}', '{"id":""}'),
  ...wrong('home/cmd/call', '{}', '', '{"item":""}', '{"item":["apps"]}', '{"item":"apps","section":"managers"}'),
  ...wrong('home/cmd/call', '{"item":"apps","method":"get"}', '{"item":"apps","method":"PATCH"}'),
  ...wrong('home/cmd/call', '{"item":"apps","path":5}', '{"item":"apps","path":"/app/../x"}'),
  ...wrong('home/cmd/call', '{"item":"apps","query":"id=1"}', '{"item":"apps","query":{"a":[1]}}'),
  ...wrong('home/cmd/call', '{"item":"apps","query":{"_method":"DELETE"}}', '{"item":"apps","headers":{}}'),
  ...wrong('home/cmd/call', '{"item":"apps","body":{}}'),
  ...wrong('home/cmd/speak', '{"text":5}', '{"text":""}', ''),
  ...wrong('home/cmd/get-apps', '{"filter":[]}', '{"filter":{"sate":"running"}}', '{"filter":{"state":"flying"}}'),
  ...wrong('home/cmd/get-apps', '{"filter":{"name":{}}}'),
]
