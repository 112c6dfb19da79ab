/// The master key and salt of one sender; wiped when the last copy of this is gone.
package struct SRTPKeys: Sendable {
    package let profile: SRTPProfile
    package let masterKey: SecretBytes
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

    /// Keys that are no secret, because they stand in arrays.
    /// - Returns: nil unless both have the profile's lengths.
    package init?(profile: SRTPProfile, masterKey: [UInt8], masterSalt: [UInt8]) {
        self.init(
            profile: profile, masterKey: SecretBytes(copying: masterKey),
            masterSalt: SecretBytes(copying: masterSalt))
    }
}

/// Master keys that wait for the first packet of each kind; gone once both kinds have their session keys.
struct PendingSRTPKeys {
    private var keys: SRTPKeys?

    /// - Parameter keys: nil where a library has them.
    init(_ keys: SRTPKeys?) {
        self.keys = keys
    }

    /// Derives the session keys of one kind of packets.
    ///
    /// - Parameters:
    ///   - isLast: whether the other kind has its session keys.
    ///   - isSealing: true to encrypt, false to decrypt.
    mutating func derive(
        _ transform: inout SRTPTransform, for purpose: SRTPPurpose, isLast: Bool, isSealing: Bool
    ) throws(SRTPError) {
        guard let keys else { throw .library(0) }
        try transform.key(with: keys, for: purpose, isSealing: isSealing)
        if isLast { self.keys = nil }
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

    /// The keys this side encrypts with.
    package func outbound(as role: DTLSRole) -> SRTPKeys {
        role == .client ? client : server
    }

    /// The keys the other side encrypts with.
    package func inbound(as role: DTLSRole) -> SRTPKeys {
        role == .client ? server : client
    }
}
