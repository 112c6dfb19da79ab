import Base
import Wire

/// One of our addresses and one of the server's, and how far their check got.
///
/// - Source: RFC 8445 §6.1.2.
struct CheckPair: Sendable {
    enum State: Sendable {
        case waiting
        case checking(Transaction)
        case valid(Validity)
        case failed
    }

    struct Validity: Sendable {
        let since: MonotonicTime
        /// A nomination or consent check under way.
        var check: Transaction?
        /// Whether a check with USE-CANDIDATE was answered.
        var isNominated = false
    }

    let local: ICEControllingAgent.Candidate
    let remote: ICEControllingAgent.Candidate
    /// By RFC 8445 §6.1.2.3.
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

    /// The check under way, of whatever purpose.
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

    /// Whether its first check has an outcome.
    var isSettled: Bool {
        switch state {
        case .waiting, .checking: false
        case .valid, .failed: true
        }
    }
}

/// A Binding request under way.
///
/// - Source: RFC 8489 §6.2.1 (retransmission), RFC 7675 §5.1 (consent checks go out once).
struct Transaction: Sendable {
    /// How often a request is sent at most (Rc).
    static let sendLimit = 7
    /// How long an answer to the last one is waited for, in initial time-outs (Rm).
    static let lastWait = 16

    let id: STUNTransactionID
    let bytes: [UInt8]
    let nominates: Bool
    /// Which role it claims: one that changed meanwhile makes a 487 meaningless.
    let isControlling: Bool
    let firstSent: MonotonicTime
    /// The time-out after the first sending; doubles with each.
    let timeout: Duration
    let sendLimit: Int
    private(set) var sent = 1
    /// When to send again, or to give up.
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

    /// - Returns: false when it is time to give up instead.
    mutating func sendAgain(at now: MonotonicTime) -> Bool {
        guard sent < sendLimit else { return false }
        sent += 1
        due = now + (sent == sendLimit ? timeout * Self.lastWait : timeout * (1 << (sent - 1)))
        return true
    }
}
