import Base
import CUSRSCTP
import Synchronization

/// The one usrsctp stack of the process, shared by the associations of all workers.
///
/// usrsctp keeps its endpoints, timers and random numbers in global variables. It protects them by locks, but its
/// timer list supports a single driver, and a driver on a thread beside threads that receive is known to deadlock
/// (sctplab/usrsctp issues 649, 718 and 719). Therefore:
/// - Every call into the library holds the one lock of this object. Calls are short: a message costs about 2 µs, one
///   of 256 KiB half a millisecond. No media packet ever waits for the lock.
/// - Whichever thread calls first advances the timers for all, by the time that has passed (`SCTPTimeline`). Packets
///   that become due for associations of other workers wait in their outboxes until those workers look, at their own
///   deadlines.
/// - The library's own thread, its iterator, never gets work: it would run only if addresses were unregistered, and
///   they never are.
///
/// Addresses are small numbers, not pointers, because the library writes them into its cookies: a pointer would
/// disclose to every peer where this process has its memory (CVE-2020-6514).
final class SCTPStack: Sendable {
    /// Started by the first association, so that a server without data channels does not pay for it.
    static let shared = SCTPStack()

    /// Numbers that stand for the addresses of associations.
    fileprivate struct Addresses {
        /// Released numbers, reused in order, so that each rests for as long as possible.
        var free: [UInt] = []
        /// Index of the first free number that was not reused; those before it are removed now and then.
        var firstFree = 0
        /// The next number that was never used.
        var next: UInt = 1
    }

    /// What the lock guards.
    ///
    /// Functions that call the library require it as a parameter, as proof that the lock is held.
    struct Guarded {
        fileprivate var addresses = Addresses()
        /// Buffer for one read; longer messages are read in pieces.
        var scratch = [UInt8](repeating: 0, count: 65_536)
    }

    /// Most associations at a time.
    static let maximumAssociations = 65_535
    /// As often as usrsctp's own timer thread would run, in milliseconds.
    static let tickMilliseconds: Int64 = 10

    private let guarded = Mutex(Guarded())

    private init() {
        // No UDP encapsulation and no log output: its messages are about what strangers send.
        unsafe usrsctp_init_nothreads(0, SCTPOutboxes.transmit, nil)
        // Data channels need partial reliability and stream reset. Everything else is off, to expose less code to
        // peers.
        usrsctp_sysctl_set_sctp_pr_enable(1)
        usrsctp_sysctl_set_sctp_reconfig_enable(1)
        usrsctp_sysctl_set_sctp_asconf_enable(0)
        usrsctp_sysctl_set_sctp_auth_enable(0)
        usrsctp_sysctl_set_sctp_auto_asconf(0)
        usrsctp_sysctl_set_sctp_ecn_enable(0)
        usrsctp_sysctl_set_sctp_nrsack_enable(0)
        usrsctp_sysctl_set_sctp_pktdrop_enable(0)
        // No limit on retransmissions: usrsctp 0.9.5 never releases an association that ends because of missing
        // acknowledgements. ICE decides whether the peer is gone.
        usrsctp_sysctl_set_sctp_max_retran_chunk(0)
    }

    /// Advances the timers, then calls `body`, under the lock that every call into usrsctp needs.
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

    /// Calls `body` under the lock, without advancing the timers.
    func locked<Result, Failure: Error>(
        _ body: (inout Guarded) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // `withLock` does not pass typed errors on, so the outcome is carried out in a variable.
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

    /// A number that no other association has, registered with usrsctp as an address of this host.
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

    /// Releases a number for reuse; it stays registered with usrsctp, see above.
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
