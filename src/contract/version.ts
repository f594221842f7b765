/** Version of the MQTT contract; a change that could break an automation needs a new one. */
export const CONTRACT_VERSION = 1 as const
