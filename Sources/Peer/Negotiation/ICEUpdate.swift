import Base
import Wire

/// The content of a PATCH request: more candidates, or new credentials.
///
/// - Source: RFC 9725 §4.3; RFC 8840 §4.
package enum ICEUpdate: Equatable, Sendable {
    /// Candidates of the client under its present credentials; a lite agent needs none of them.
    case candidates([ICECandidate], isComplete: Bool)
    /// An ICE restart under new credentials.
    case restart(ICECredentials)

    /// Why a PATCH request changes nothing.
    package enum Refusal: Error, Equatable, Sendable {
        /// 400: half of the credentials is missing, or they are malformed.
        case invalidCredentials
    }

    /// Classifies the fragment in a PATCH request.
    /// - Parameter current: the client's credentials in the session so far.
    package init(_ fragment: SDPFragment, current: ICECredentials) throws(Refusal) {
        let sections: [any SDPSection] = [fragment] + fragment.media
        let named = sections.contains { $0.has(.iceUfrag) || $0.has(.icePassword) }
        if let credentials = fragment.credentials, credentials != current {
            guard credentials.isValid, credentials.ufrag != current.ufrag else { throw .invalidCredentials }
            self = .restart(credentials)
            return
        }
        guard !named || fragment.credentials != nil || fragment.ufrags == [current.ufrag] else {
            throw .invalidCredentials
        }
        self = .candidates(fragment.allCandidates, isComplete: fragment.isComplete)
    }
}

extension SDPFragment {
    /// The distinct ufrags in it; a client that only trickles may omit its password.
    fileprivate var ufrags: Set<String> {
        Set(all(.iceUfrag) + media.flatMap { $0.all(.iceUfrag) })
    }

    /// The response to an ICE restart: new credentials and the same candidates.
    ///
    /// - Parameter plan: what the session agreed on; everything is in its first m-line.
    package init(restarting plan: SessionPlan, as transport: LocalTransport) {
        self.init()
        append(.iceLite)
        append(.iceOptions, "ice2 trickle")
        guard let mid = plan.bundledMIDs.first else { return }
        append(.group, MediaGroup(semantics: "BUNDLE", mids: plan.bundledMIDs).text)
        let source = plan.sources.first { $0.mid == mid }
        let slot = plan.slots.first { $0.mid == mid }
        let kind = source?.kind ?? slot?.kind ?? .audio
        let format = source?.formats.first ?? slot?.formats.first
        var section = MediaDescription(
            media: kind.rawValue, port: 9, transport: "UDP/TLS/RTP/SAVPF",
            formats: [format.map { String($0.payloadType) } ?? "0"])
        if mid == plan.dataChannel?.mid { section = DataChannelPlan.section(answering: nil) }
        section.append(.mid, mid)
        section.append(transport.credentials)
        for candidate in transport.candidates { section.append(.candidate, candidate.text) }
        section.append(.endOfCandidates)
        media = [section]
    }
}
