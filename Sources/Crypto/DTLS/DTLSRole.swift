/// Which end of the DTLS handshake this is.
package enum DTLSRole: Sendable {
    /// Sends the first flight (`a=setup:active`).
    case client
    /// Waits for it (`a=setup:passive`); chooses cipher suite and SRTP profile.
    case server
}
