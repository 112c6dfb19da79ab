import Base
import Wire

/// Whether whoever is at a remote address has agreed to what is sent there.
///
/// A check says only where its sender claims to be, and whoever opened a session has all its passwords and keys. So
/// neither a check nor an authentic packet stops somebody who forges source addresses from having media sent to a third
/// party. The answer to a request of ours does: only who receives at that address knows its transaction id. A lite
/// agent need not send requests, but may, and full agents answer them.
/// - Source: RFC 5245 §18.5.1 (the voice hammer attack); RFC 8445 §2.5 (lite), §7.3 (answers).
enum AddressProof: Equatable, Sendable {
    /// It answered, or a handshake went through it and nowhere else, or it is the end of a TCP connection.
    case given
    case wanted(AddressInquiry)

    init(for address: TransportAddress) {
        self = address.transport == .tcp ? .given : .wanted(AddressInquiry())
    }

    var isGiven: Bool {
        if case .given = self { true } else { false }
    }

    /// Nil once the proof is there.
    var inquiry: AddressInquiry? {
        if case .wanted(let inquiry) = self { inquiry } else { nil }
    }
}

/// The requests to one address.
///
/// They repeat one transaction, so that a late answer to an early request counts.
struct AddressInquiry: Equatable, Sendable {
    /// Requests after the first check; every later check brings one more.
    ///
    /// Together with the answers this is at most four times what a forger sends, and soon no more than twice.
    static let tries = 3
    /// Between the first request and the second; doubles.
    ///
    /// Deviates from the 500 ms of RFC 8445 §14.3, because a picture waits, and because there are three at most.
    static let firstInterval = Duration.milliseconds(100)

    /// Nil until the first request was sent.
    private(set) var transactionID: STUNTransactionID?
    /// When the next request is to be sent; nil until another check comes.
    private(set) var due: MonotonicTime?
    private var triesLeft = Self.tries
    private var interval = Self.firstInterval

    /// Asks for requests: a check came.
    mutating func begin(at now: MonotonicTime) {
        guard due == nil else { return }
        triesLeft = max(triesLeft, 1)
        due = now
    }

    /// - Returns: the transaction id of the request that is to be sent now.
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
