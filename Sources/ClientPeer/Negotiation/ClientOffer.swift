import Base
import Peer
import Wire

/// An offer like a browser's, for simulations, load tests and headless clients, and what the client must remember of
/// it.
///
/// Payload types and extension IDs are Chrome's.
package struct ClientOffer: Sendable {
    /// An m-line to be offered.
    package enum Request: Equatable, Sendable {
        case publishAudio
        /// One codec with its RTX; `rids` are ordered from the best layer to the lowest, and empty without simulcast.
        case publishVideo(MediaCodec.Family, rids: [String] = [])
        case playAudio
        /// All codecs with their RTX.
        case playVideo
        case dataChannels
    }

    /// The feedback on received packets that a client offers; browsers offer the first.
    package enum Feedback: Sendable {
        case transportWide, receiverEstimate
        /// By sequence number (RFC 8888).
        case congestionControl
    }

    /// An RTP stream that the client will send, with its retransmissions.
    package struct Encoding: Equatable, Sendable {
        /// Nil without simulcast.
        package var rid: String?
        /// Announced in the offer unless RIDs are.
        package var ssrc: UInt32
        /// Nil without RTX.
        package var repairSSRC: UInt32?
    }

    /// An offered m-line.
    package struct Line: Equatable, Sendable {
        /// The index of the m-line.
        package var mid: String
        /// The media type of the m-line.
        package var type: MediaDescription.MediaType
        /// From the client's point of view.
        package var direction: MediaDirection
        /// What the client will send; empty if it only receives.
        package var encodings: [Encoding]
    }

    /// The client's ICE credentials.
    package let credentials: ICECredentials
    /// In the order of the offer.
    package let lines: [Line]
    /// The offer itself.
    package let description: SessionDescription

    /// - Parameter candidates: addresses of the client; a lite server needs none.
    package init(
        _ requests: [Request], credentials: ICECredentials, fingerprint: SDPFingerprint,
        candidates: [TransportAddress] = [], feedback: Feedback = .transportWide,
        using random: inout some RandomNumberGenerator
    ) {
        self.credentials = credentials
        let cname = String.random(length: 16, using: &random)
        let stream = String.random(length: 16, using: &random)
        var lines: [Line] = []
        var media: [MediaDescription] = []
        for (index, request) in requests.enumerated() {
            let line = Line(request, mid: String(index), using: &random)
            var section = OfferSection(request, line, feedback: feedback)
            section.appendTransport(credentials, fingerprint, candidates: index == 0 ? candidates : [])
            section.appendSources(cname: cname, stream: stream)
            lines.append(line)
            media.append(section.media)
        }
        self.lines = lines
        var description = SessionDescription(
            origin: "- \(random.next() >> 1) 2 IN IP4 127.0.0.1", media: media)
        description.append(.group, MediaGroup(semantics: "BUNDLE", mids: lines.map(\.mid)).text)
        description.append(.extmapAllowMixed)
        self.description = description
    }

    /// The body of a PATCH request.
    ///
    /// With the offer's credentials it adds candidates; with new ones it restarts ICE.
    package func fragment(credentials: ICECredentials, candidates: [TransportAddress] = []) -> SDPFragment {
        var fragment = SDPFragment()
        fragment.append(.group, MediaGroup(semantics: "BUNDLE", mids: lines.map(\.mid)).text)
        guard let first = description.media.first, let mid = first.mid else { return fragment }
        var section = MediaDescription(
            media: first.media, port: 9, transport: first.transport, formats: first.formats)
        section.append(.mid, mid)
        section.append(credentials)
        for (index, address) in candidates.enumerated() {
            section.append(.candidate, ICECandidate(host: address, index: index).text)
        }
        fragment.media = [section]
        return fragment
    }
}

extension ClientOffer.Line {
    init(_ request: ClientOffer.Request, mid: String, using random: inout some RandomNumberGenerator) {
        func encoding(_ rid: String?, hasRepair: Bool, _ random: inout some RandomNumberGenerator)
            -> ClientOffer.Encoding
        {
            // 0 has a special meaning for Chrome. Collisions are as improbable as with a browser, and not checked.
            let ssrc = UInt32.random(in: 1...UInt32.max, using: &random)
            let repair = hasRepair ? UInt32.random(in: 1...UInt32.max, using: &random) : nil
            return ClientOffer.Encoding(rid: rid, ssrc: ssrc, repairSSRC: repair)
        }
        self.mid = mid
        encodings = []
        switch request {
        case .publishAudio:
            (type, direction) = (.audio, .sendonly)
            encodings = [encoding(nil, hasRepair: false, &random)]
        case .publishVideo(_, let rids):
            (type, direction) = (.video, .sendonly)
            let names: [String?] = rids.isEmpty ? [nil] : rids
            for name in names { encodings.append(encoding(name, hasRepair: true, &random)) }
        case .playAudio: (type, direction) = (.audio, .recvonly)
        case .playVideo: (type, direction) = (.video, .recvonly)
        case .dataChannels: (type, direction) = (.application, .sendrecv)
        }
    }
}
