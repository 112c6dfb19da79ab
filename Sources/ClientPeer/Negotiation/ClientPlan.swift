import Base
import Crypto
import Peer
import Wire

/// What offer and answer agree on: where the server is, and what each m-line carries.
package struct ClientPlan: Equatable, Sendable {
    /// The server's ICE credentials.
    package var remoteCredentials: ICECredentials
    /// One of them must match the server's certificate.
    package var fingerprints: [SDPFingerprint]
    /// The client's role: a server that answers `active`, as full agents like to, begins the handshake itself.
    package var dtlsRole: DTLSRole
    /// The server's candidates without duplicates, by descending priority; every m-line may repeat them.
    package var candidates: [ICECandidate]
    /// Accepted m-lines for media, in order.
    package var lines: [Line]
    /// Nil without data channels.
    package var dataChannel: DataChannelPlan?
    /// Whether one-byte and two-byte header extensions may be mixed.
    /// - Source: RFC 8285 §6.
    package var allowsMixedExtensions: Bool

    /// An accepted m-line.
    package struct Line: Equatable, Sendable {
        /// As in the offer.
        package var mid: String
        /// Of the m-line's media type in the offer.
        package var kind: MediaKind
        /// From the client's point of view.
        package var direction: MediaDirection
        /// In the server's order; a client sends the first one.
        package var formats: [MediaFormat]
        /// Extensions that both sides support, with the offer's IDs.
        package var extensions: ExtensionIDs
        /// What the client sends; with simulcast, the accepted layers.
        package var encodings: [ClientOffer.Encoding]
        /// What the server sends; nil if it sends nothing.
        package var remote: RemoteSource?
    }

    /// The RTP stream of a slot.
    package struct RemoteSource: Equatable, Sendable {
        /// Stays the same whatever the slot carries.
        package var ssrc: UInt32
        /// Nil without RTX.
        package var repairSSRC: UInt32?
        /// The same for slots in lip sync.
        package var cname: String?
        /// The identity of the MediaStream in which a browser would put it.
        package var msid: MediaStreamIdentifier?
    }

    /// Why an answer cannot be used.
    package enum Problem: Error, Equatable, Sendable {
        case malformed(WireError)
        /// Its m-lines do not match those of the offer.
        case mismatch
        /// It lacks ICE credentials, a fingerprint or candidates.
        case noTransport
        /// It does not state who begins the DTLS handshake (RFC 8842 §5.3).
        case noRole
        /// Every m-line was rejected.
        case rejected
    }

    /// Further candidates are ignored.
    private static let candidateLimit = 64

    /// UDP addresses of the server, by descending priority.
    package var addresses: [TransportAddress] {
        candidates.filter { $0.transport == .udp && $0.component == 1 }.compactMap(\.transportAddress)
    }

    /// Nil for an m-line that was rejected or not offered.
    package subscript(mid mid: String) -> Line? { lines.first { $0.mid == mid } }

    /// - Throws: if a browser would refuse the answer as well.
    package init(_ answer: SessionDescription, to offer: ClientOffer) throws(Problem) {
        guard answer.media.count == offer.lines.count else { throw .mismatch }
        // Port 0 rejects an m-line (RFC 3264 §6).
        let accepted = zip(offer.lines, answer.media).filter { $0.1.port != 0 }
        guard let first = accepted.first?.1 else { throw .rejected }
        candidates = []
        for candidate in accepted.flatMap({ $0.1.candidates }) where candidates.count < Self.candidateLimit {
            if !candidates.contains(candidate) { candidates.append(candidate) }
        }
        candidates.sort { $0.priority > $1.priority }
        allowsMixedExtensions = answer.allowsMixedExtensions
        guard let credentials = first.iceCredentials ?? answer.iceCredentials, credentials.isValid,
            !candidates.isEmpty
        else { throw .noTransport }
        remoteCredentials = credentials
        lines = []
        var role: SetupRole?
        do throws(WireError) {
            fingerprints = try first.fingerprints() + answer.fingerprints()
            role = try first.setup()
            if role == nil { role = try answer.setup() }
        } catch {
            throw .malformed(error)
        }
        switch role {
        case .passive: dtlsRole = .client
        case .active: dtlsRole = .server
        default: throw .noRole
        }
        guard !fingerprints.isEmpty else { throw .noTransport }
        for (offered, section) in accepted {
            guard section.mid == offered.mid, section.type == offered.type else { throw .mismatch }
            do throws(WireError) {
                guard let kind = section.kind else {
                    dataChannel = try DataChannelPlan(section, mid: offered.mid)
                    continue
                }
                lines.append(try Line(offered, kind, section))
            } catch {
                throw .malformed(error)
            }
        }
    }
}

extension ClientPlan.Problem: CustomStringConvertible {
    /// Part of a sentence, for error messages.
    package var description: String {
        switch self {
        case .malformed(let error): "\(error)"
        case .mismatch: "its m-lines don't match those of the offer"
        case .noTransport: "it has no ICE credentials, fingerprint or candidates"
        case .noRole: "it doesn't say who begins the DTLS handshake (a=setup)"
        case .rejected: "it rejects every m-line"
        }
    }
}

extension ClientPlan.Line {
    fileprivate init(
        _ offered: ClientOffer.Line, _ kind: MediaKind, _ section: MediaDescription
    ) throws(WireError) {
        mid = offered.mid
        self.kind = kind
        direction = (section.direction ?? .sendrecv).reversed
        formats = try OfferedFormat.formats(of: section).map(\.format)
        extensions = ExtensionIDs()
        for map in try section.extensionMaps() {
            guard let uri = RTPExtensionURI(rawValue: map.uri), let id = UInt8(exactly: map.id) else {
                continue
            }
            extensions[uri] = id
        }
        let wanted = try section.simulcast()?.receive.joined().map(\.rid)
        encodings = offered.encodings.filter { encoding in
            encoding.rid.map { wanted?.contains($0) ?? false } ?? true
        }
        let groups = try section.sourceGroups().filter { $0.semantics == "FID" && $0.ssrcs.count == 2 }
        let sources = try section.sourceAttributes()
        guard let ssrc = groups.first?.ssrcs.first ?? sources.first?.ssrc else { return }
        remote = ClientPlan.RemoteSource(
            ssrc: ssrc, repairSSRC: groups.first?.ssrcs.last,
            cname: sources.first { $0.ssrc == ssrc && $0.name == "cname" }?.value,
            msid: try section.msids().first)
    }
}
