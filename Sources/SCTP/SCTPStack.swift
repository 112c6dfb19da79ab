import Base
import CUSRSCTP
import Synchronization

/// The one usrsctp stack of the process: all associations of all workers live in it.
///
/// usrsctp keeps its endpoints, timers and random numbers in global variables. It has locks for them, but its timer
/// list takes one driver only, and with a driver beside threads that receive it is known to deadlock
/// (sctplab/usrsctp issues 649, 718 and 719). So here
/// - every call into the library holds the one lock of this object: calls are short (a message costs about 2 µs,
///   one of 256 KiB half a millisecond), and no media packet ever waits for it;
/// - whoever comes first drives the timers for everybody, by the time that passed (`SCTPTimeline`): packets that
///   become due for other workers' associations lie in their outboxes until those look for them, which they do at
///   their own deadlines;
/// - the library's one thread, its iterator, never gets work: it would run only when addresses are given back, and
///   they never are.
///
/// Addresses are small numbers, not pointers, because the library writes them into its cookies: a pointer would tell
/// every peer where this process keeps its memory (CVE-2020-6514).
final class SCTPStack: Sendable {
    /// Started by the first association, so that a server without data channels does not have it.
    static let shared = SCTPStack()

    /// Numbers that stand for the paths of associations.
    fileprivate struct Addresses {
        /// Given back; used again in turn, so that each rests as long as possible.
        var free: [UInt] = []
        var firstFree = 0
        var next: UInt = 1
    }

    struct Guarded {
        fileprivate var addresses = Addresses()
        /// Where messages are received; what is longer comes in pieces.
        var scratch = [UInt8](repeating: 0, count: 65_536)
    }

    /// Most associations at a time.
    static let maximumAssociations = 65_535
    /// usrsctp's own timer thread ticks as often.
    static let tickMilliseconds: Int64 = 10

    private let guarded = Mutex(Guarded())

    private init() {
        // UDP encapsulation is off; complaints go nowhere, because they come from what strangers send.
        unsafe usrsctp_init_nothreads(0, SCTPOutboxes.transmit, nil)
        // What a data channel needs is partial reliability and stream reset; the rest only widens the door.
        usrsctp_sysctl_set_sctp_pr_enable(1)
        usrsctp_sysctl_set_sctp_reconfig_enable(1)
        usrsctp_sysctl_set_sctp_asconf_enable(0)
        usrsctp_sysctl_set_sctp_auth_enable(0)
        usrsctp_sysctl_set_sctp_auto_asconf(0)
        usrsctp_sysctl_set_sctp_ecn_enable(0)
        usrsctp_sysctl_set_sctp_nrsack_enable(0)
        usrsctp_sysctl_set_sctp_pktdrop_enable(0)
        // An association that ends because nothing is answered is never given back by usrsctp 0.9.5, whatever its
        // limits; and whether the peer is gone, ICE decides.
        usrsctp_sysctl_set_sctp_max_retran_chunk(0)
    }

    /// Drives the timers, then calls `body` under the lock that every call into usrsctp needs.
    func run<Result, Failure: Error>(
        at now: MonotonicTime, on timeline: SCTPTimeline,
        _ body: (inout Guarded) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try locked { guarded throws(Failure) in
            let elapsed = timeline.elapsedMilliseconds(to: now)
            if elapsed > 0 { usrsctp_handle_timers(elapsed) }
            return try body(&guarded)
        }
    }

    /// Calls `body` under the lock.
    func locked<Result, Failure: Error>(
        _ body: (inout Guarded) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var outcome: Swift.Result<Result, Failure>?
        guarded.withLock { guarded in
            do throws(Failure) {
                outcome = .success(try body(&guarded))
            } catch {
                outcome = .failure(error)
            }
        }
        guard let outcome else { preconditionFailure("withLock calls its body") }
        return try outcome.get()
    }

    /// Gives out a number that no other association has, known to usrsctp as an address of this host.
    func takeAddress() throws(SCTPError) -> UInt {
        try locked { guarded throws(SCTPError) in
            if guarded.addresses.firstFree < guarded.addresses.free.count {
                return guarded.addresses.takeFree()
            }
            guard guarded.addresses.next <= UInt(Self.maximumAssociations) else {
                throw .tooManyAssociations
            }
            let address = guarded.addresses.next
            guarded.addresses.next += 1
            unsafe usrsctp_register_address(UnsafeMutableRawPointer(bitPattern: address))
            return address
        }
    }

    /// Takes a number back; usrsctp keeps it (see above).
    func giveBack(_ address: UInt) {
        locked { guarded in guarded.addresses.free.append(address) }
    }
}

extension SCTPStack.Addresses {
    fileprivate mutating func takeFree() -> UInt {
        let address = free[firstFree]
        firstFree += 1
        if firstFree > 1_024, firstFree * 2 > free.count {
            free.removeFirst(firstFree)
            firstFree = 0
        }
        return address
    }
}
