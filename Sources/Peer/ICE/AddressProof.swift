import Base
import Wire

/// Whether the host at a remote address has agreed to receive what is sent there.
///
/// A check only claims where its sender is, and the client that opened a session knows all of its passwords and
/// keys. So neither a check nor an authentic packet keeps a client that forges source addresses from directing
/// media at a third party. The response to a request of ours does: only a host that receives at that address learns
/// the transaction id. A lite agent need not send requests but may, and full agents answer them.
/// - Source: RFC 5245 §18.5.1 (the voice hammer attack); RFC 8445 §2.5 (lite), §7.3 (answers).
enum AddressProof: Equatable, Sendable {
    /// The address answered a request, or the whole handshake went through it, or it is the end of a TCP
    /// connection.
    case given
    /// No proof yet: requests are sent to the address.
    case wanted(AddressInquiry)

    init(for address: TransportAddress) {
        self = address.transport == .tcp ? .given : .wanted(AddressInquiry())
    }

    var isGiven: Bool {
        if case .given = self { true } else { false }
    }

    /// The outstanding requests; nil once the address is proven.
    var inquiry: AddressInquiry? {
        if case .wanted(let inquiry) = self { inquiry } else { nil }
    }
}

/// The requests to one address.
///
/// All repeat one transaction id, so that a late response to an early request counts.
struct AddressInquiry: Equatable, Sendable {
    /// Requests after the first check; every later check causes one more.
    ///
    /// With the responses to the checks this is at most four times what a forger sends, and after the first check
    /// twice.
    static let tries = 3
    /// Interval between the first request and the second; doubles.
    ///
    /// Deviates from the 500 ms of RFC 8445 §14.3, because the viewer's first picture waits for it, and because
    /// there are at most three requests.
    static let firstInterval = Duration.milliseconds(100)

    /// Nil until the first request is sent.
    private(set) var transactionID: STUNTransactionID?
    /// When the next request is due; nil until another check arrives.
    private(set) var due: MonotonicTime?
    private var triesLeft = Self.tries
    private var interval = Self.firstInterval

    /// Schedules requests because a check arrived.
    mutating func begin(at now: MonotonicTime) {
        guard due == nil else { return }
        triesLeft = max(triesLeft, 1)
        due = now
    }

    /// Counts a request that is sent now and schedules the next one.
    ///
    /// - Returns: the transaction id for the request.
    mutating func ask(
        at now: MonotonicTime, using random: inout some RandomNumberGenerator
    ) -> STUNTransactionID {
        let id = transactionID ?? STUNTransactionID(using: &random)
        transactionID = id
        triesLeft -= 1
        due = nil
        if triesLeft > 0 {
            due = now + interval
            interval = interval * 2
        }
        return id
    }
}
