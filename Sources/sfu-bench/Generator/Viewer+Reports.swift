import Base
import ClientPeer
import Net
import Peer
import Wire

// What a viewer tells the server: reports, requests for packets and for key frames.

extension Viewer {
    func receiveControl(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {
        guard let length = try? connection.unprotectControl(&datagram),
            let packets = try? RTCPPacket.parseCompound(datagram.span.extracting(first: length))
        else {
            box.tally.unreadable &+= 1
            return
        }
        for case .senderReport(let report) in packets {
            for index in streams.indices where streams[index].ssrc == report.ssrc {
                _ = streams[index].reception.receive(report, at: now)
            }
        }
    }

    /// When `advance` wants to be called.
    var deadline: MonotonicTime {
        guard !connection.isClosed else { return .distantFuture }
        var earliest = connection.deadline ?? .distantFuture
        guard connection.isConnected else { return earliest }
        earliest = min(earliest, reports.deadline, nextKeyFrameRequest ?? .distantFuture)
        guard settings.asksForRepair else { return earliest }
        for index in streams.indices {
            earliest = min(earliest, streams[index].reception.deadline ?? .distantFuture)
        }
        return earliest
    }

    func advance(to now: MonotonicTime) {
        if let due = connection.deadline, now >= due {
            connection.advance(to: now, using: &random, into: &sink)
            takeConnectionEvents(at: now)
        }
        guard connection.isConnected else { return }
        if reports.isDue(at: now, using: &random) { sendReport(at: now) }
        if let due = nextKeyFrameRequest, now >= due {
            requestKeyFrame()
            nextKeyFrameRequest = now.advanced(byNanoseconds: Self.keyFramePatience)
        }
        if settings.asksForRepair { askForRepair(at: now) }
    }

    private func sendReport(at now: MonotonicTime) {
        var blocks: [ReportBlock] = []
        for index in streams.indices where streams[index].repairs == nil {
            if let block = streams[index].reception.reportBlock(at: now) { blocks.append(block) }
        }
        for bytes in packer.reports(senders: [], receptions: blocks) {
            connection.sendControl(bytes, into: &sink)
        }
    }

    private func requestKeyFrame() {
        guard let video = streams.first(where: { $0.isVideo && $0.repairs == nil }) else { return }
        box.tally.keyFrameRequestsSent &+= 1
        let request = PictureLossIndication(senderSSRC: ssrc, mediaSSRC: video.ssrc)
        for bytes in packer.feedback([.pictureLossIndication(request)]) {
            connection.sendControl(bytes, into: &sink)
        }
    }

    private func askForRepair(at now: MonotonicTime) {
        var packets: [RTCPPacket] = []
        for index in streams.indices where streams[index].repairs == nil {
            var lost: [UInt16] = []
            streams[index].reception.nacksDue(at: now, rtt: connection.roundTripTime, into: &lost)
            let media = streams[index].ssrc
            if !lost.isEmpty {
                box.tally.repairsAskedFor &+= UInt64(lost.count)
                packets.append(.nack(.init(senderSSRC: ssrc, mediaSSRC: media, lost: lost)))
            }
            if streams[index].reception.takeKeyFrameDemand() {
                box.tally.keyFrameRequestsSent &+= 1
                packets.append(.pictureLossIndication(.init(senderSSRC: ssrc, mediaSSRC: media)))
            }
        }
        guard !packets.isEmpty else { return }
        for bytes in packer.feedback(packets) { connection.sendControl(bytes, into: &sink) }
    }

    func leave() {
        connection.close(into: &sink)
    }
}
