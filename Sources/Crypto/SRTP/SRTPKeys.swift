/// The master key and salt of one sender; wiped when the last copy of this value is gone.
package struct SRTPKeys: Sendable {
    /// The profile that the lengths belong to.
    package let profile: SRTPProfile
    /// Master key, of the profile's `keyLength`.
    package let masterKey: SecretBytes
    /// Master salt, of the profile's `saltLength`.
    package let masterSalt: SecretBytes

    /// - Returns: nil unless both have the profile's lengths.
    init?(profile: SRTPProfile, masterKey: SecretBytes?, masterSalt: SecretBytes?) {
        guard let masterKey, let masterSalt, masterKey.count == profile.keyLength,
            masterSalt.count == profile.saltLength
        else { return nil }
        self.profile = profile
        self.masterKey = masterKey
        self.masterSalt = masterSalt
    }

    /// Keys that are not secret, as in tests: the arrays they come from are not wiped.
    /// - Returns: nil unless both have the profile's lengths.
    package init?(profile: SRTPProfile, masterKey: [UInt8], masterSalt: [UInt8]) {
        self.init(
            profile: profile, masterKey: SecretBytes(copying: masterKey),
            masterSalt: SecretBytes(copying: masterSalt))
    }
}

/// Master keys that are kept until the first packet of each kind; released once both kinds have session keys.
struct PendingSRTPKeys {
    private var keys: SRTPKeys?

    /// - Parameter keys: nil if a library keeps them.
    init(_ keys: SRTPKeys?) {
        self.keys = keys
    }

    /// Derives the session keys of one kind of packets, and releases the master keys after the last.
    ///
    /// - Parameters:
    ///   - isLast: whether the other kind has its session keys already.
    ///   - isSealing: true to encrypt, false to decrypt.
    mutating func derive(
        _ transform: inout SRTPTransform, for purpose: SRTPPurpose, isLast: Bool, isSealing: Bool
    ) throws(SRTPError) {
        guard let keys else { throw .library(0) }
        try transform.key(with: keys, for: purpose, isSealing: isSealing)
        if isLast { self.keys = nil }
    }
}

/// The keys that a DTLS handshake yields for SRTP: one set for each direction.
package struct SRTPKeyingMaterial: Sendable {
    /// The profile that the handshake negotiated.
    package let profile: SRTPProfile
    /// The keys with which the DTLS client encrypts.
    package let client: SRTPKeys
    /// The keys with which the DTLS server encrypts.
    package let server: SRTPKeys

    /// Bytes to request from DTLS's exporter.
    package static func exportLength(_ profile: SRTPProfile) -> Int {
        2 * (profile.keyLength + profile.saltLength)
    }

    /// Splits the exporter's output.
    ///
    /// - Parameter exported: client key, server key, client salt, server salt.
    /// - Returns: nil if the length is wrong.
    /// - Source: RFC 5764 §4.2.
    init?(profile: SRTPProfile, exported: SecretBytes) {
        guard exported.count == Self.exportLength(profile) else { return nil }
        let (key, salt) = (profile.keyLength, profile.saltLength)
        let salts = 2 * key
        guard
            let client = SRTPKeys(
                profile: profile, masterKey: exported.part(0..<key),
                masterSalt: exported.part(salts..<(salts + salt))),
            let server = SRTPKeys(
                profile: profile, masterKey: exported.part(key..<salts),
                masterSalt: exported.part((salts + salt)..<exported.count))
        else { return nil }
        self.profile = profile
        self.client = client
        self.server = server
    }

    /// The keys with which this side encrypts.
    package func outbound(as role: DTLSRole) -> SRTPKeys {
        role == .client ? client : server
    }

    /// The keys with which the other side encrypts.
    package func inbound(as role: DTLSRole) -> SRTPKeys {
        role == .client ? server : client
    }
}
