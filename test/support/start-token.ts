/** Returns the request header with the token from the address that a daemon prints for the user who started it. */
export function ownerOf(address: string): { readonly authorization: string } {
  const token = new URL(address).searchParams.get('token')
  if (token === null) throw new Error(`no token in ${address}`)
  return { authorization: `Bearer ${token}` }
}
