import Peer
import Wire

/// Drops a source's higher temporal and spatial layers for one receiver, in such a way that the receiver sees no gap.
///
/// The sequence numbers of dropped packets are closed, and so are VP8's picture IDs. The layer of a missing packet is
/// unknown, so its number stays reserved. If the packet turns out to belong to a dropped layer, a packet without
/// payload fills the place. A layer is dropped from the beginning of a picture. It is resumed where the source allows
/// it: spatial layers only at a key frame, because other pictures depend on what was dropped before. The last packet
/// that is sent of a picture gets the marker bit, or the receiver would wait for the rest. All decisions follow from
/// the packets' numbers, so that a retransmitted packet is identical to the first one.
///
/// AV1 counts frames instead of pictures, and each spatial layer of a picture is a frame. So where higher layers are
/// dropped, their frame numbers are missing between two pictures. Frame numbers are left as they are, because
/// descriptors refer to frames by distance.
///
/// It is a class, because segments, which are read for each packet, share it.
/// - Source: RFC 7741 §4.2 (TID, Y, TL0PICIDX), RFC 9628 §4.1 (marker), §4.2 (TID, U, SID, E); RFC 3550 §5.1; RTP
///   Payload Format for AV1 §4.2 (marker), appendix A.8.2 (`frame_number`).
package final class FrameSieve {
    /// What to do with a packet.
    enum Verdict: Equatable {
        case send
        /// Send it with the marker bit, because the rest of the picture is dropped.
        case sendLast
        /// Send an empty packet, which fills its reserved place.
        case fill
        case leaveOut
    }

    /// The totals of what was dropped before some packet.
    struct Omissions: Equatable {
        var packets: Int64 = 0
        var pictures: UInt16 = 0
    }

    /// Successive packets that were dropped.
    private struct Run {
        let start: Int64
        var end: Int64
        /// Totals at its end, including all earlier runs.
        var omissions: Omissions
    }

    /// The newest packet, as far as later decisions depend on it.
    private struct Newest {
        var sequence: Int64
        var timestamp: UInt32 = 0
        var endsPicture = false
        /// Whether all further packets of the same picture are dropped.
        var isFollowedByNothing = false
        var isLeftOut = false
        var pictures = PictureNumbers()
        var spatial: UInt8 = 0
    }

    /// The highest layers that are sent; `.max` for all.
    struct Limit: Equatable {
        var temporal = UInt8.max
        var spatial = UInt8.max

        fileprivate func leavesOut(_ layers: LayerPlace) -> Bool {
            layers.temporal > temporal || layers.spatial > spatial
        }

        /// How a packet within these layers is sent.
        fileprivate func form(of packet: ForwardedPacket) -> Verdict {
            let layers = packet.layers
            return layers.endsSpatialLayer && layers.spatial == spatial && !packet.marker ? .sendLast : .send
        }
    }

    /// The limit to change to as soon as the source allows it.
    var target = Limit()
    /// The limit that applies now.
    private(set) var limit = Limit()
    /// The latest changes of `limit`, the oldest first; at most `changeLimit`.
    private var changes: [(from: Int64, limit: Limit)] = []
    /// The latest runs of dropped packets, the oldest first; nothing is known about packets before the end of the
    /// first.
    private var runs: [Run] = []
    private var newest: Newest
    /// Whether the source marks where temporal layers may be resumed; otherwise none is dropped.
    private var isSure: Bool
    /// Whether all temporal layers may be resumed with the next picture.
    private var isOpen = false
    /// The highest spatial layer of the latest picture that was directly followed by the next one; nil before.
    private var top: UInt8?

    /// Maximum number of runs: more than eight seconds at 30 pictures a second in two temporal layers.
    private static let runLimit = 128
    private static let changeLimit = 8

    /// Starts a sieve that drops nothing until its `target` is changed.
    /// - Parameters:
    ///   - first: the first packet that belongs to the segment.
    ///   - last: the newest packet that was sent before the sieve existed.
    init(from first: Int64, after last: Int64, isSure: Bool) {
        newest = Newest(sequence: last)
        self.isSure = isSure
        runs.reserveCapacity(Self.runLimit)
        changes.reserveCapacity(Self.changeLimit)
        runs.append(Run(start: first, end: first, omissions: Omissions()))
    }

    /// Continues another sieve's limits behind a gap.
    ///
    /// - Parameter first: the first packet that belongs to the new segment.
    init(continuing other: FrameSieve, from first: Int64) {
        newest = Newest(sequence: first &- 1)
        isSure = other.isSure
        (target, limit) = (other.target, other.limit)
        runs.reserveCapacity(Self.runLimit)
        changes.reserveCapacity(Self.changeLimit)
        runs.append(Run(start: first, end: first, omissions: Omissions()))
        changes.append((first, limit))
    }

    /// Whether larger pictures will be sent from the next key frame on.
    var isWaitingForKeyFrame: Bool { target.spatial > limit.spatial }

    /// Decides on a packet that arrives for the first time.
    func judge(_ packet: ForwardedPacket) -> Verdict {
        let sequence = packet.sequenceNumber
        guard sequence > newest.sequence else { return judgeLate(packet) }
        closeGap(before: packet)
        let layers = packet.layers
        if layers.startsPicture, sequence == newest.sequence &+ 1 { top = newest.spatial }
        if layers.startsPicture { adjustLimit(to: packet) }
        if layers.tellsWhereToSwitch { isSure = true }
        let isLeftOut = limit.leavesOut(layers)
        if layers.temporal > limit.temporal {
            isOpen = false
        } else if layers.opensHigherLayers, !isLeftOut {
            isOpen = true
        }
        if isLeftOut { leaveOut(sequence..<(sequence &+ 1), pictures: startsOmission(packet) ? 1 : 0) }
        let verdict = isLeftOut ? .leaveOut : limit.form(of: packet)
        newest = Newest(
            sequence: sequence, timestamp: packet.timestamp, endsPicture: packet.marker,
            isFollowedByNothing: verdict != .send, isLeftOut: isLeftOut, pictures: packet.pictures,
            spatial: layers.spatial)
        return verdict
    }

    /// How a packet with a number was sent, or would have been; nil if that was too long ago.
    ///
    /// Guessing would be dangerous: two different packets under one number would be encrypted with one nonce (RFC
    /// 7714 §8.1).
    func form(of packet: ForwardedPacket) -> Verdict? {
        guard let limit = limit(at: packet.sequenceNumber) else { return nil }
        return limit.leavesOut(packet.layers) ? .fill : limit.form(of: packet)
    }

    /// The highest spatial layer sent of a packet's picture; nil if that was too long ago.
    func spatialLimit(at sequence: Int64) -> UInt8? { limit(at: sequence)?.spatial }

    /// Whether a packet will probably be sent, going by `target`.
    func takes(_ packet: ForwardedPacket) -> Bool { !target.leavesOut(packet.layers) }

    /// What was dropped before a packet; nil for one that is dropped itself, or is too old to tell.
    func omissions(before sequence: Int64) -> Omissions? {
        var index = runs.count - 1
        while index >= 0 {
            let run = runs[index]
            if sequence >= run.end { return run.omissions }
            if sequence >= run.start { return nil }
            index -= 1
        }
        return nil
    }

    /// The source's packet that was sent with a number; nil if it is too old to tell.
    /// - Parameter number: the number that the packet would have in the source's numbering if nothing was dropped
    ///   before it.
    func origin(of number: Int64) -> Int64? {
        var index = runs.count - 1
        while index >= 0 {
            let run = runs[index]
            let sequence = number &+ run.omissions.packets
            if sequence >= run.end { return sequence }
            index -= 1
        }
        return nil
    }

    // MARK: Deciding

    /// Decides on a packet that arrives after a newer one: its place was reserved, or closed with a dropped run.
    private func judgeLate(_ packet: ForwardedPacket) -> Verdict {
        guard omissions(before: packet.sequenceNumber) != nil else { return .leaveOut }
        return form(of: packet) ?? .leaveOut
    }

    /// The limit that applied to a packet; nil if that is no longer known.
    private func limit(at sequence: Int64) -> Limit? {
        var index = changes.count - 1
        while index >= 0 {
            if sequence >= changes[index].from { return changes[index].limit }
            index -= 1
        }
        return changes.count < Self.changeLimit ? Limit() : nil
    }

    /// Changes the limit from the picture on that begins with this packet.
    private func adjustLimit(to packet: ForwardedPacket) {
        var new = limit
        new.temporal = temporalLimit(from: packet)
        if target.spatial < limit.spatial || packet.startsKeyFrame { new.spatial = target.spatial }
        guard new != limit else { return }
        limit = new
        if changes.count == Self.changeLimit { changes.removeFirst() }
        changes.append((packet.sequenceNumber, new))
    }

    private func temporalLimit(from packet: ForwardedPacket) -> UInt8 {
        let layers = packet.layers
        if target.temporal < limit.temporal {
            return isSure || layers.tellsWhereToSwitch ? target.temporal : limit.temporal
        }
        if packet.startsKeyFrame || isOpen { return target.temporal }
        // Layers are resumed one after another, because a layer's pictures depend on all layers below it.
        let isNext = layers.isSwitchingPoint && layers.temporal == limit.temporal &+ 1
        return isNext && target.temporal > limit.temporal ? layers.temporal : limit.temporal
    }

    // MARK: Leaving out

    /// Whether a dropped packet is the first known one of its picture.
    private func startsOmission(_ packet: ForwardedPacket) -> Bool {
        guard packet.descriptor.isVP8, packet.pictures.pictureID != nil else { return false }
        return !newest.isLeftOut || newest.timestamp != packet.timestamp
    }

    /// Drops the packets missing before a packet, if they can only belong to dropped layers.
    private func closeGap(before packet: ForwardedPacket) {
        let missing = (newest.sequence &+ 1)..<packet.sequenceNumber
        guard !missing.isEmpty else { return }
        // Later pictures may depend on a missing packet of a higher layer, which is dropped if it arrives.
        isOpen = false
        // The spatial layers of a picture follow one another, the largest last.
        if newest.isFollowedByNothing, newest.timestamp == packet.timestamp || follows(packet) {
            return leaveOut(missing, pictures: 0)
        }
        // VP8 counts all pictures, and separately those of the lowest layer.
        let layers = packet.layers
        guard limit.temporal == 0, packet.descriptor.isVP8, newest.endsPicture,
            layers.startsPicture || layers.temporal > 0,
            let before = newest.pictures.pictureID, let after = packet.pictures.pictureID,
            let lowestBefore = newest.pictures.tl0PictureIndex,
            let lowestAfter = packet.pictures.tl0PictureIndex,
            lowestAfter &- lowestBefore == (layers.temporal == 0 ? 1 : 0)
        else { return }
        let pictures = (after &- before &- 1) & 0x7FFF
        guard pictures > 0 || !layers.startsPicture, Int(pictures) <= missing.count else { return }
        leaveOut(missing, pictures: pictures)
    }

    /// Whether a packet begins the next picture, by VP9's picture ID or AV1's frame number.
    private func follows(_ packet: ForwardedPacket) -> Bool {
        guard packet.layers.startsPicture, !packet.descriptor.isVP8 else { return false }
        if packet.codec == .av1 {
            guard let top, let before = newest.pictures.frameNumber, let after = packet.pictures.frameNumber
            else { return false }
            let missing = after &- before &- 1
            return missing == 0 || missing == UInt16(top) &- UInt16(min(newest.spatial, top))
        }
        guard let before = newest.pictures.pictureID, let after = packet.pictures.pictureID else {
            return false
        }
        return (after &- before) & 0x7FFF == 1
    }

    /// Records a range of dropped packets, and how many pictures begin in it.
    private func leaveOut(_ range: Range<Int64>, pictures: UInt16) {
        let last = runs.count - 1
        var omissions = runs[last].omissions
        omissions.packets &+= range.upperBound &- range.lowerBound
        omissions.pictures &+= pictures
        if runs[last].end == range.lowerBound, last > 0 {
            runs[last].end = range.upperBound
            runs[last].omissions = omissions
            return
        }
        if runs.count == Self.runLimit { runs.removeFirst() }
        runs.append(Run(start: range.lowerBound, end: range.upperBound, omissions: omissions))
    }
}
