/** Version of the MQTT contract. A change that could break automations requires a new version. */
export const CONTRACT_VERSION = 1 as const
