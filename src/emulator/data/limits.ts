/** How many settings an app or the hub may have, and how large they may be. */
export const MAX_SETTINGS = 1000
export const MAX_SETTING_NAME = 200
/** As JSON. */
export const MAX_SETTING_BYTES = 256 * 1024
