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

/** Commands with payload types that they do not accept. */
export const WRONG_TYPES: readonly Right[] = [
  [app('update'), '{"autoupdate":"true"}'],
  [app('update'), '{"autoupdate":1}'],
  [app('update'), '{"channel":1}'],
  [app('update'), '{"channel":""}'],
  [app('update'), '{}'],
  [app('update'), ''],
  [app('guard'), '{"enabled":"ON"}'],
  [app('guard'), '{"snooze":30}'],
  [app('guard'), '{"snooze":"999ms"}'],
  [app('guard'), '{"snooze":"9000h"}'],
  [app('guard'), '{"forget":false}'],
  [app('guard'), '{}'],
  [app('guard'), ''],
  [app('install'), '{"channel":null}'],
  [app('restart'), '{"message":5}'],
  [app('uninstall'), '{"confirm":1}'],
  [app('uninstall'), '{"confirm":true}'],
  [app('uninstall'), '{}'],
  [app('uninstall'), `{"confirm":"${APP.toUpperCase()}"}`],
  [app('uninstall'), `{"confirm":"${APP}","purge_settings":"true"}`],
  [app('get-setting'), '{"name":5}'],
  [app('get-setting'), '{"name":""}'],
  [app('get-setting'), ''],
  [app('set-setting'), '{"name":"one"}'],
  [app('set-setting'), '{"value":1}'],
  [app('unset-setting'), '{"name":["one"]}'],
  ['home/cmd/install', '{"id":5}'],
  ['home/cmd/install', '{"id":""}'],
  ['home/cmd/call', '{}'],
  ['home/cmd/call', ''],
  ['home/cmd/call', '{"item":""}'],
  ['home/cmd/call', '{"item":["apps"]}'],
  ['home/cmd/call', '{"item":"apps","section":"managers"}'],
  ['home/cmd/call', '{"item":"apps","method":"get"}'],
  ['home/cmd/call', '{"item":"apps","method":"PATCH"}'],
  ['home/cmd/call', '{"item":"apps","path":5}'],
  ['home/cmd/call', '{"item":"apps","path":"/app/../x"}'],
  ['home/cmd/call', '{"item":"apps","query":"id=1"}'],
  ['home/cmd/call', '{"item":"apps","query":{"a":[1]}}'],
  ['home/cmd/call', '{"item":"apps","query":{"_method":"DELETE"}}'],
  ['home/cmd/call', '{"item":"apps","headers":{}}'],
  ['home/cmd/call', '{"item":"apps","body":{}}'],
  ['home/cmd/speak', '{"text":5}'],
  ['home/cmd/speak', '{"text":""}'],
  ['home/cmd/speak', ''],
  ['home/cmd/get-apps', '{"filter":[]}'],
  ['home/cmd/get-apps', '{"filter":{"sate":"running"}}'],
  ['home/cmd/get-apps', '{"filter":{"state":"flying"}}'],
  ['home/cmd/get-apps', '{"filter":{"name":{}}}'],
]
