/** The rights of who started a daemon, by the address that it prints. */

/** The header that a request with the address's token has. */
export function ownerOf(address: string): { readonly authorization: string } {
  const token = new URL(address).searchParams.get('token')
  if (token === null) throw new Error(`no token in ${address}`)
  return { authorization: `Bearer ${token}` }
}
