/// The role of this side in the DTLS handshake.
package enum DTLSRole: Sendable {
    /// Sends the first flight (`a=setup:active`).
    case client
    /// Waits for the first flight (`a=setup:passive`); chooses cipher suite and SRTP profile.
    case server
}
