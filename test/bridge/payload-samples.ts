/** Valid payloads. They do not depend on the command table. */

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
