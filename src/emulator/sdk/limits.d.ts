export const MAX_SETTINGS: number
export const MAX_SETTING_NAME: number
export const MAX_SETTING_BYTES: number
export const MAX_NAME: number
export const MAX_LINE_BYTES: number

export type Refusal = { readonly status: number; readonly code: string; readonly message: string }

export function refusedSetting(name: string, json: string | undefined, others: number): Refusal | undefined
export function refusedParameter(name: string, value: unknown): Refusal
