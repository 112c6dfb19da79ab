import Base

/// The master key and salt of one sender.
package struct SRTPKeys: Sendable {
    package let profile: SRTPProfile
    package let masterKey: Secret<[UInt8]>
    package let masterSalt: Secret<[UInt8]>

    /// - Returns: nil unless both have the profile's lengths.
    package init?(profile: SRTPProfile, masterKey: [UInt8], masterSalt: [UInt8]) {
        guard masterKey.count == profile.keyLength, masterSalt.count == profile.saltLength else { return nil }
        self.profile = profile
        self.masterKey = Secret(masterKey)
        self.masterSalt = Secret(masterSalt)
    }
}

/// The keys a DTLS handshake leaves for SRTP: one set for each direction.
package struct SRTPKeyingMaterial: Sendable {
    package let profile: SRTPProfile
    /// What the DTLS client encrypts with.
    package let client: SRTPKeys
    /// What the DTLS server encrypts with.
    package let server: SRTPKeys

    /// Bytes to ask the exporter for.
    package static func exportLength(_ profile: SRTPProfile) -> Int {
        2 * (profile.keyLength + profile.saltLength)
    }

    /// Cuts up what the exporter gave.
    ///
    /// - Parameter exported: client key, server key, client salt, server salt.
    /// - Returns: nil if the length is wrong.
    /// - Source: RFC 5764 §4.2.
    package init?(profile: SRTPProfile, exported: [UInt8]) {
        guard exported.count == Self.exportLength(profile) else { return nil }
        let (key, salt) = (profile.keyLength, profile.saltLength)
        let salts = 2 * key
        guard
            let client = SRTPKeys(
                profile: profile, masterKey: Array(exported[..<key]),
                masterSalt: Array(exported[salts..<(salts + salt)])),
            let server = SRTPKeys(
                profile: profile, masterKey: Array(exported[key..<salts]),
                masterSalt: Array(exported[(salts + salt)...]))
        else { return nil }
        self.profile = profile
        self.client = client
        self.server = server
    }

    /// The keys this side encrypts with.
    package func outbound(as role: DTLSRole) -> SRTPKeys {
        role == .client ? client : server
    }

    /// The keys the other side encrypts with.
    package func inbound(as role: DTLSRole) -> SRTPKeys {
        role == .client ? server : client
    }
}
