import CUSRSCTP
import Glibc
import Wire

/// One usrsctp socket, with one association.
///
/// Each method needs the value that the lock of `SCTPStack` guards, so none can be called without the lock. `close`
/// must be called explicitly, because `deinit` cannot know whether the lock is held.
/// - Source: RFC 6458 (sockets API), usrsctp's Manual §3 (AF_CONN).
@safe final class SCTPSocket {
    /// The result of one read.
    enum Received {
        /// A message, or a piece of it; more pieces follow unless `isEnd`.
        case piece(stream: UInt16, payload: UInt32, isOrdered: Bool, bytes: [UInt8], isEnd: Bool)
        case notification(SCTPNotification)
        /// Nothing can be read now.
        case nothing
        /// The association is gone.
        case ended
    }

    /// The result of passing something to the library.
    enum Sent {
        /// Accepted.
        case all
        /// Not accepted now: there is no room, or something else has to finish first.
        case nothing
        /// Never accepted.
        case refused
    }

    /// SCTP port, the same on both sides in all SDP in use (RFC 8841 §5).
    private static let port: in_port_t = 5_000
    /// IPPROTO_SCTP, the level of socket options.
    private static let level: CInt = 132
    /// Attempts for every kind of retransmission; RFC 9260 §16 gives up after 8 and 10.
    private static let unlimited = UInt16.max

    // Closed by `close`. The library identifies the owner by a number, not a pointer, and copies what it is given.
    private let socket: OpaquePointer
    private let address: UInt
    private let configuration: SCTPConfiguration
    private var isClosed = false
    /// Size of the send buffer as last set.
    private var sendBuffer = 0

    /// Opens and binds the socket, and sends INIT.
    /// - Throws: `.addressInUse` if usrsctp still uses the address; the socket is closed then.
    init(
        address: UInt, configuration: SCTPConfiguration, under guarded: inout SCTPStack.Guarded
    ) throws(SCTPError) {
        guard
            let socket = unsafe usrsctp_socket(
                AF_CONN, CInt(SOCK_STREAM.rawValue), Self.level, nil, nil, 0, nil)
        else { throw .library("usrsctp_socket", errno) }
        unsafe self.socket = unsafe socket
        self.address = address
        self.configuration = configuration
        do throws(SCTPError) {
            try unsafe check(usrsctp_set_non_blocking(socket, 1), "usrsctp_set_non_blocking")
            try setUp()
            try limit()
            try subscribe()
            try unsafe withAddress { address, length throws(SCTPError) in
                guard unsafe usrsctp_bind(socket, address, length) != 0 else { return }
                throw errno == EADDRINUSE ? .addressInUse : .library("usrsctp_bind", errno)
            }
            try connect()
        } catch {
            close(under: &guarded)
            throw error
        }
    }

    deinit {
        assert(isClosed, "a socket of usrsctp must be closed under the stack's lock")
    }

    /// Aborts the association; its last packet goes to the outbox.
    func close(under guarded: inout SCTPStack.Guarded) {
        guard !isClosed else { return }
        isClosed = true
        unsafe usrsctp_close(socket)
    }

    /// Sends INIT, after which the peer's INIT is answered, too (RFC 9260 §5.2.1: both may begin).
    private func connect() throws(SCTPError) {
        let (outcome, code) = unsafe withAddress { address, length in
            let outcome = unsafe usrsctp_connect(socket, address, length)
            return (outcome, errno)
        }
        guard outcome == 0 || code == EINPROGRESS else { throw .library("usrsctp_connect", code) }
        try setPath(of: address)
    }

    /// Passes a packet of the peer to the library.
    func receive(_ packet: Span<UInt8>, under guarded: inout SCTPStack.Guarded) {
        unsafe packet.withUnsafeBytes { bytes in
            unsafe usrsctp_conninput(
                UnsafeMutableRawPointer(bitPattern: address), bytes.baseAddress, bytes.count, 0)
        }
    }

    // MARK: Messages

    /// Passes a message to the library, whole or not at all.
    ///
    /// - Parameter lifetime: milliseconds left until the message may be dropped; nil for the whole lifetime.
    func send(
        _ message: SCTPMessage, lifetime: UInt32?, under guarded: inout SCTPStack.Guarded
    ) -> Sent {
        var info = sctp_sendv_spa()
        info.sendv_flags = UInt32(SCTP_SEND_SNDINFO_VALID)
        info.sendv_sndinfo.snd_sid = message.stream
        info.sendv_sndinfo.snd_ppid = message.payload.bigEndian
        info.sendv_sndinfo.snd_flags = UInt16(SCTP_EOR)
        if !message.delivery.isOrdered { info.sendv_sndinfo.snd_flags |= UInt16(SCTP_UNORDERED) }
        switch message.delivery.reliability {
        case .reliable: break
        case .retransmissions(let count):
            info.sendv_flags |= UInt32(SCTP_SEND_PRINFO_VALID)
            info.sendv_prinfo.pr_policy = UInt16(SCTP_PR_SCTP_RTX)
            info.sendv_prinfo.pr_value = count
        case .lifetime(let milliseconds):
            info.sendv_flags |= UInt32(SCTP_SEND_PRINFO_VALID)
            info.sendv_prinfo.pr_policy = UInt16(SCTP_PR_SCTP_TTL)
            info.sendv_prinfo.pr_value = lifetime ?? milliseconds
        }
        // A message must fit whole. A message longer than the buffer gets the room, because only one can be in the
        // buffer at a time. Stream 0 gets extra room, so that control messages need not wait for others: usrsctp
        // takes turns between streams, message by message.
        let room = configuration.transportBuffer + (message.stream == 0 ? configuration.controlBuffer : 0)
        resize(to: message.bytes.count > room ? room + message.bytes.count : room)
        let count = unsafe message.bytes.withUnsafeBytes { bytes in
            unsafe usrsctp_sendv(
                socket, bytes.baseAddress, bytes.count, nil, 0, &info,
                socklen_t(MemoryLayout<sctp_sendv_spa>.size), UInt32(SCTP_SENDV_SPA), 0)
        }
        if count >= 0 { return .all }
        return errno == EAGAIN || errno == ENOBUFS ? .nothing : .refused
    }

    /// Reads one message, piece of a message, or notification.
    func read(under guarded: inout SCTPStack.Guarded) -> Received {
        var info = sctp_rcvinfo()
        var infoLength = socklen_t(MemoryLayout<sctp_rcvinfo>.size)
        var infoType: UInt32 = 0
        var flags: CInt = 0
        let count = unsafe guarded.scratch.withUnsafeMutableBytes { scratch in
            unsafe usrsctp_recvv(
                socket, scratch.baseAddress, scratch.count, nil, nil, &info, &infoLength, &infoType, &flags)
        }
        guard count > 0 else { return count < 0 && errno == EAGAIN ? .nothing : .ended }
        let bytes = Array(guarded.scratch.prefix(count))
        if flags & MSG_NOTIFICATION != 0 { return .notification(SCTPNotification(bytes)) }
        guard infoType == UInt32(SCTP_RECVV_RCVINFO) else { return .notification(.other) }
        return .piece(
            stream: info.rcv_sid, payload: UInt32(bigEndian: info.rcv_ppid),
            isOrdered: info.rcv_flags & UInt16(SCTP_UNORDERED) == 0, bytes: bytes,
            isEnd: flags & CInt(MSG_EOR) != 0)
    }

    /// Chunks that wait to be sent or to be acknowledged.
    func outstanding(under guarded: inout SCTPStack.Guarded) -> Int {
        var status = sctp_status()
        var length = socklen_t(MemoryLayout<sctp_status>.size)
        guard unsafe usrsctp_getsockopt(socket, Self.level, SCTP_STATUS, &status, &length) == 0 else {
            return 0
        }
        return Int(status.sstat_unackdata) + Int(status.sstat_penddata)
    }

    /// Requests a reset of the stream, which closes the local direction of a data channel (RFC 6525 §5.1.2).
    ///
    /// - Returns: `.nothing` while another such request is under way, `.refused` if the peer does not support resets.
    func resetOutgoing(_ stream: UInt16, under guarded: inout SCTPStack.Guarded) -> Sent {
        // A `struct sctp_reset_streams` with a list of one stream.
        let request: [UInt16] = [0, 0, UInt16(SCTP_STREAM_RESET_OUTGOING), 1, stream]
        let outcome = unsafe request.withUnsafeBytes { bytes in
            unsafe usrsctp_setsockopt(
                socket, Self.level, SCTP_RESET_STREAMS, bytes.baseAddress, socklen_t(bytes.count))
        }
        if outcome == 0 { return .all }
        return errno == EALREADY || errno == EAGAIN ? .nothing : .refused
    }
}

// MARK: Options

extension SCTPSocket {
    /// Turns a failure into an error with the library's `errno`.
    private func check(_ outcome: CInt, _ call: String) throws(SCTPError) {
        guard outcome == 0 else { throw .library(call, errno) }
    }

    private func set<Value>(
        _ option: CInt, _ value: Value, at level: CInt = SCTPSocket.level
    ) throws(SCTPError) {
        let outcome = unsafe withUnsafeBytes(of: value) { bytes in
            unsafe usrsctp_setsockopt(socket, level, option, bytes.baseAddress, socklen_t(bytes.count))
        }
        try check(outcome, "usrsctp_setsockopt \(option)")
    }

    /// Sets how the association behaves.
    private func setUp() throws(SCTPError) {
        // Closing aborts: an orderly shutdown would have no one left to talk to, since the peer connection is gone.
        try set(SO_LINGER, linger(l_onoff: 1, l_linger: 0), at: SOL_SOCKET)
        try set(SCTP_NODELAY, CInt(1))
        try set(SCTP_RECVRCVINFO, CInt(1))
        try set(
            SCTP_ENABLE_STREAM_RESET,
            sctp_assoc_value(
                assoc_id: UInt32(SCTP_ALL_ASSOC), assoc_value: UInt32(SCTP_ENABLE_RESET_STREAM_REQ)))
        try set(
            SCTP_INITMSG,
            sctp_initmsg(
                sinit_num_ostreams: configuration.streams, sinit_max_instreams: configuration.streams,
                sinit_max_attempts: Self.unlimited, sinit_max_init_timeo: 2_000))
        // In milliseconds. A retransmission within a quarter of a second keeps delays short for people; RFC 9260 §16
        // has 1 s and 60 s.
        try set(
            SCTP_RTOINFO, sctp_rtoinfo(srto_assoc_id: 0, srto_initial: 500, srto_max: 2_000, srto_min: 250))
        try set(SCTP_DELAYED_SACK, sctp_sack_info(sack_assoc_id: 0, sack_delay: 50, sack_freq: 2))
        var parameters = sctp_assocparams()
        parameters.sasoc_asocmaxrxt = Self.unlimited
        try set(SCTP_ASSOCINFO, parameters)
        try setPath(of: nil)
    }

    /// Sets the sizes of buffers.
    private func limit() throws(SCTPError) {
        try set(SO_RCVBUF, CInt(configuration.receiveBuffer), at: SOL_SOCKET)
        resize(to: configuration.transportBuffer)
        // A message is delivered whole, unless it fills the buffer by itself.
        try set(SCTP_PARTIAL_DELIVERY_POINT, UInt32(configuration.receiveBuffer))
    }

    /// Switches heartbeats and path MTU discovery off: ICE watches the path, and the limit is known.
    private func setPath(of address: UInt?) throws(SCTPError) {
        var parameters = sctp_paddrparams()
        if let address {
            unsafe withUnsafeMutableBytes(of: &parameters.spp_address) { storage in
                unsafe storage.storeBytes(of: Self.socketAddress(address), as: sockaddr_conn.self)
            }
        } else {
            parameters.spp_address.ss_family = sa_family_t(AF_CONN)
        }
        parameters.spp_flags = UInt32(SPP_HB_DISABLE | SPP_PMTUD_DISABLE)
        // Without the common header of 12 bytes, which usrsctp adds; a multiple of four.
        parameters.spp_pathmtu = UInt32((configuration.maximumPacket - 12) & ~3)
        parameters.spp_pathmaxrxt = Self.unlimited
        try set(SCTP_PEER_ADDR_PARAMS, parameters)
    }

    /// Selects the notifications that `read` returns.
    private func subscribe() throws(SCTPError) {
        for type in [
            SCTP_ASSOC_CHANGE, SCTP_SHUTDOWN_EVENT, SCTP_STREAM_RESET_EVENT, SCTP_PARTIAL_DELIVERY_EVENT,
        ] {
            try set(
                SCTP_EVENT, sctp_event(se_assoc_id: UInt32(SCTP_ALL_ASSOC), se_type: UInt16(type), se_on: 1))
        }
    }

    /// Sets the size of the send buffer, if it is not that already.
    private func resize(to bytes: Int) {
        guard bytes != sendBuffer else { return }
        sendBuffer = bytes
        // Cannot fail for sizes below usrsctp's 256 MB. If it did, messages would only wait for longer.
        try? set(SO_SNDBUF, CInt(bytes), at: SOL_SOCKET)
    }

    private static func socketAddress(_ address: UInt) -> sockaddr_conn {
        unsafe sockaddr_conn(
            sconn_family: UInt16(AF_CONN), sconn_port: port.bigEndian,
            sconn_addr: UnsafeMutableRawPointer(bitPattern: address))
    }

    private func withAddress<Result, Failure: Error>(
        _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var storage = sockaddr_storage()
        unsafe withUnsafeMutableBytes(of: &storage) {
            unsafe $0.storeBytes(of: Self.socketAddress(address), as: sockaddr_conn.self)
        }
        return try unsafe withUnsafeMutablePointer(to: &storage) { pointer throws(Failure) in
            try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address throws(Failure) in
                try unsafe body(address, socklen_t(MemoryLayout<sockaddr_conn>.size))
            }
        }
    }
}
