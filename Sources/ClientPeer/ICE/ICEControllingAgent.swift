import Base
import Wire

/// The browser's side of ICE: it checks the server's candidates, nominates one, and refreshes consent.
///
/// For simulations, `sfu-bench` and headless clients, against lite servers and full ones, whose checks it answers. It
/// gathers no candidates. Deterministic: time and random numbers are parameters.
/// - Source: RFC 8445 §6, §7.2, §8; RFC 8489 §6.2.1; RFC 7675.
package struct ICEControllingAgent: Sendable {
    /// The nomination behavior of different browsers.
    package enum Nomination: Sendable, CaseIterable {
        /// Like Chrome with a lite server: it nominates the pair in use, and repeats that in each consent check.
        case regular
        /// Like Firefox: every first check nominates, the highest priority wins, and consent checks do not nominate.
        case aggressive
    }

    /// Intervals and timeouts; the defaults are those of browsers.
    package struct Configuration: Sendable {
        /// Like Chrome unless a test needs Firefox.
        package var nomination = Nomination.regular
        /// Between the first checks of two pairs (Ta).
        package var pacing: Duration = .milliseconds(50)
        /// Minimum of the first retransmission timeout (RTO).
        package var retransmissionTimeout: Duration = .milliseconds(500)
        /// How long regular nomination waits for a better pair after the first valid one.
        package var patience: Duration = .milliseconds(100)
        /// Between consent checks, randomized by a fifth.
        ///
        /// Like Chrome; Firefox uses 5 s.
        package var consentInterval: Duration = .milliseconds(2_500)
        /// After this time without an answer nothing more is sent (RFC 7675 §5.1).
        package var consentTimeout: Duration = .seconds(30)

        package init() {}
    }

    /// A transport address of either side.
    package struct Candidate: Hashable, Sendable {
        /// The address by which the other side reaches it.
        package let address: TransportAddress
        /// - Source: RFC 8445 §5.1.2.
        package let priority: UInt32

        package init(address: TransportAddress, priority: UInt32) {
            self.address = address
            self.priority = priority
        }

        /// A host candidate; a lower index means a higher preference (RFC 8445 §5.1.2.1).
        package init(host address: TransportAddress, index: UInt16 = 0) {
            // RFC 6544 §4.2: TCP ranks below UDP, as it does among the server's candidates.
            let preference: UInt32 = address.transport == .tcp ? 90 : 126
            self.init(address: address, priority: preference << 24 | UInt32(0xFFFF - index) << 8 | 255)
        }
    }

    /// A local address and one of the server's.
    package struct Path: Hashable, Sendable {
        /// The socket's address, not the one that the server sees.
        package let local: TransportAddress
        /// One of the server's candidates.
        package let remote: TransportAddress

        package init(local: TransportAddress, remote: TransportAddress) {
            self.local = local
            self.remote = remote
        }
    }

    /// What the owner must do, in order.
    package enum Effect: Equatable, Sendable {
        case send([UInt8], on: Path)
        /// Media uses this path from now on, in place of any earlier one.
        case select(Path)
        /// No pair works; reported once for each set of candidates.
        case failed
        /// The server does not answer any more, and nothing more may be sent (RFC 7675 §5.1).
        case consentLost
    }

    /// Why a datagram had no effect.
    package enum Refusal: Error, Hashable, Sendable {
        case malformed, notAnAnswer, unknownTransaction, unauthenticated
    }

    /// Further pairs, those with the lowest priorities, are not checked (RFC 8445 §6.1.2.5).
    package static let pairLimit = 100

    let configuration: Configuration
    var localCredentials: ICECredentials
    var remoteCredentials: ICECredentials
    var locals: [Candidate] = []
    var remotes: [Candidate] = []
    /// By descending priority.
    var pairs: [CheckPair] = []
    /// Changes only by a role conflict (RFC 8445 §7.3.1.1).
    package internal(set) var isControlling: Bool
    var tieBreaker: UInt64
    /// Whether `nominate(_:)` chose the path, so that no better one replaces it.
    var isPinned = false
    /// Whether `failed` has been reported for the present candidates.
    var hasFailed = false
    /// Whether the server has been silent for `consentTimeout`.
    package internal(set) var isConsentLost = false
    /// When the next pair may be checked for the first time.
    var nextCheck: MonotonicTime
    var nextConsentCheck: MonotonicTime
    /// When the server last answered on the selected path.
    package internal(set) var lastConsent: MonotonicTime
    /// The path of media; nil until one is selected.
    package internal(set) var selected: Path?
    /// Of the latest answered request that was sent only once.
    package internal(set) var roundTripTime: Duration?
    /// The local address as the server sees it on the selected path.
    package internal(set) var mappedAddress: TransportAddress?

    /// - Parameters:
    ///   - isControlling: false only in tests of role conflicts; a lite server requires a controlling client.
    ///   - random: yields the tie-breaker.
    package init(
        local: ICECredentials, remote: ICECredentials, configuration: Configuration = Configuration(),
        isControlling: Bool = true, at now: MonotonicTime, using random: inout some RandomNumberGenerator
    ) {
        localCredentials = local
        remoteCredentials = remote
        self.configuration = configuration
        self.isControlling = isControlling
        tieBreaker = random.next()
        nextCheck = now
        nextConsentCheck = now
        lastConsent = now
    }

    // MARK: Candidates

    /// Adds a local socket; checks from it begin at the next `advance`.
    package mutating func addLocal(_ candidate: Candidate) {
        guard !locals.contains(where: { $0.address == candidate.address }) else { return }
        locals.append(candidate)
        for remote in remotes { addPair(candidate, remote) }
    }

    /// Adds a candidate of the server, from its answer or trickled later.
    package mutating func addRemote(_ candidate: Candidate) {
        guard !remotes.contains(where: { $0.address == candidate.address }) else { return }
        remotes.append(candidate)
        for local in locals { addPair(local, candidate) }
    }

    /// Removes a local socket, as when a network goes down.
    package mutating func removeLocal(_ address: TransportAddress) {
        locals.removeAll { $0.address == address }
        pairs.removeAll { $0.local.address == address }
        guard selected?.local == address else { return }
        selected = nil
        isPinned = false
        for index in pairs.indices {
            guard var validity = pairs[index].validity else { continue }
            // Chrome nominates a pair that it kept in reserve; Firefox checks the pairs again, which nominates too.
            validity.isNominated = false
            pairs[index].state = configuration.nomination == .regular ? .valid(validity) : .waiting
        }
    }

    private mutating func addPair(_ local: Candidate, _ remote: Candidate) {
        // Candidates pair only with the same transport and IP version (RFC 8445 §6.1.2.2).
        guard local.address.transport == remote.address.transport,
            (local.address.ip.ipv4 == nil) == (remote.address.ip.ipv4 == nil)
        else { return }
        hasFailed = false
        pairs.append(CheckPair(local: local, remote: remote, isControlling: isControlling))
        pairs.sort { $0.priority > $1.priority }
        if pairs.count > Self.pairLimit { pairs.removeLast() }
    }

    // MARK: Commands

    /// Begins an ICE restart; media stays on its path until a new one is nominated.
    ///
    /// - Parameter remoteCandidates: the server's new candidates.
    package mutating func restart(
        local: ICECredentials, remote: ICECredentials, remoteCandidates: [Candidate], at now: MonotonicTime
    ) {
        localCredentials = local
        remoteCredentials = remote
        remotes = []
        pairs = []
        isPinned = false
        nextCheck = now
        for candidate in remoteCandidates { addRemote(candidate) }
    }

    /// Moves to another valid path, like a browser that changes its network by choice.
    ///
    /// - Returns: nil if the path is not valid.
    package mutating func nominate(
        _ path: Path, at now: MonotonicTime, authenticator: some MessageAuthenticator,
        using random: inout some RandomNumberGenerator
    ) -> [Effect]? {
        guard let index = pairs.firstIndex(where: { $0.path == path }), pairs[index].validity != nil else {
            return nil
        }
        isPinned = true
        return [check(index, nominates: true, at: now, authenticator: authenticator, using: &random)]
    }
}

extension CheckPair {
    var path: ICEControllingAgent.Path { .init(local: local.address, remote: remote.address) }
}
