import Base
import Wire

/// A pair of a local and a remote candidate, and the state of its check.
///
/// - Source: RFC 8445 §6.1.2.
struct CheckPair: Sendable {
    /// Each state with the data that only it has.
    enum State: Sendable {
        case waiting
        case checking(Transaction)
        case valid(Validity)
        case failed
    }

    /// A pair whose check has been answered.
    struct Validity: Sendable {
        let since: MonotonicTime
        /// A nomination or consent check that is not answered yet.
        var check: Transaction?
        /// Whether a check with USE-CANDIDATE has been answered.
        var isNominated = false
    }

    let local: ICEControllingAgent.Candidate
    let remote: ICEControllingAgent.Candidate
    /// - Source: RFC 8445 §6.1.2.3.
    let priority: UInt64
    var state = State.waiting

    /// - Parameter isControlling: whether `local` belongs to the controlling side.
    init(
        local: ICEControllingAgent.Candidate, remote: ICEControllingAgent.Candidate, isControlling: Bool
    ) {
        self.local = local
        self.remote = remote
        let controlling = UInt64(isControlling ? local.priority : remote.priority)
        let controlled = UInt64(isControlling ? remote.priority : local.priority)
        priority =
            min(controlling, controlled) << 32 | max(controlling, controlled) << 1
            &+ (controlling > controlled ? 1 : 0)
    }

    /// The check that is not answered yet, whatever its purpose.
    var transaction: Transaction? {
        get {
            switch state {
            case .checking(let transaction): transaction
            case .valid(let validity): validity.check
            case .waiting, .failed: nil
            }
        }
        set {
            switch state {
            case .checking: state = newValue.map { .checking($0) } ?? .waiting
            /// Nil unless the pair is valid.
            case .valid(var validity):
                validity.check = newValue
                state = .valid(validity)
            case .waiting, .failed: break
            }
        }
    }

    var validity: Validity? {
        if case .valid(let validity) = state { validity } else { nil }
    }

    var isWaiting: Bool {
        if case .waiting = state { true } else { false }
    }

    /// Whether the first check has succeeded or failed.
    var isSettled: Bool {
        switch state {
        case .waiting, .checking: false
        case .valid, .failed: true
        }
    }
}

/// A Binding request that is not answered yet.
///
/// - Source: RFC 8489 §6.2.1 (retransmission), RFC 7675 §5.1 (consent checks are sent once).
struct Transaction: Sendable {
    /// How often a request is sent at most (Rc).
    static let sendLimit = 7
    /// How long to wait after the last sending, in initial timeouts (Rm).
    static let lastWait = 16

    let id: STUNTransactionID
    let bytes: [UInt8]
    /// Whether it contains USE-CANDIDATE.
    let nominates: Bool
    /// The role that it claims: if the role has changed since, a 487 (Role Conflict) is meaningless.
    let isControlling: Bool
    let firstSent: MonotonicTime
    /// The timeout after the first sending; it doubles with each further one.
    let timeout: Duration
    let sendLimit: Int
    /// How often it has been sent.
    private(set) var sent = 1
    /// When to send it again, or to give up.
    private(set) var due: MonotonicTime

    init(
        id: STUNTransactionID, bytes: [UInt8], nominates: Bool, isControlling: Bool, timeout: Duration,
        sendLimit: Int = Self.sendLimit, at now: MonotonicTime
    ) {
        self.id = id
        self.bytes = bytes
        self.nominates = nominates
        self.isControlling = isControlling
        self.timeout = timeout
        self.sendLimit = sendLimit
        firstSent = now
        due = now + timeout
    }

    /// Advances to the next sending.
    /// - Returns: false if it is time to give up.
    mutating func sendAgain(at now: MonotonicTime) -> Bool {
        guard sent < sendLimit else { return false }
        sent += 1
        due = now + (sent == sendLimit ? timeout * Self.lastWait : timeout * (1 << (sent - 1)))
        return true
    }
}
