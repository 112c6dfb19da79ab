import Base
import Forwarding
import Net
import Node

/// A node's counters under their names in monitoring; the help texts here are their only documentation.
///
/// Workers copy their counters out once a second, so numbers are up to a second old.
enum MetricsOfNode {
    /// All metrics of workers and streams.
    static func collect(_ workers: [WorkerReportCopy], _ streams: [StreamSnapshot]) -> [Metric] {
        streamMetrics(streams) + sessionMetrics(workers) + mediaMetrics(workers) + repairMetrics(workers)
            + deliveryMetrics(workers) + [refusals(workers), drops(workers)] + relayMetrics(workers)
            + networkMetrics(workers)
            + streamTransportMetrics(workers) + workerMetrics(workers)
    }

    /// Streams by state, and their viewers.
    private static func streamMetrics(_ streams: [StreamSnapshot]) -> [Metric] {
        [
            Metric(
                "rostrum_streams", .gauge, "Streams by state.",
                StreamState.allCases.map { state in
                    Metric.Sample(
                        Double(streams.count { $0.state == state }), [Metric.Label("state", state.rawValue)])
                }),
            Metric(
                "rostrum_viewers", .gauge, "Connected viewers of all streams.",
                Double(streams.reduce(0) { $0 + $1.viewers })),
        ]
    }

    /// Sessions, slots and data-channel messages.
    private static func sessionMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        [
            perWorker(workers, "rostrum_sessions", .gauge, "Sessions that live now.") {
                Double($0.counters.sessions)
            },
            perWorker(workers, "rostrum_sessions_opened_total", .counter, "Sessions made.") {
                Double($0.counters.sessionsOpened)
            },
            perWorker(
                workers, "rostrum_sessions_connected_total", .counter, "Sessions whose handshake succeeded."
            ) {
                Double($0.counters.sessionsConnected)
            },
            perWorker(
                workers, "rostrum_slots", .gauge,
                "Receiving m-lines of living sessions, to which a track can be attached."
            ) {
                Double($0.counters.slots)
            },
            perWorker(workers, "rostrum_slots_attached", .gauge, "Slots that have a track attached.") {
                Double($0.counters.slotsAttached)
            },
            labelled(
                workers, "rostrum_messages_total",
                "Messages on data channels: received, sent, or dropped (too many, too long, or for a client that reads "
                    + "too slowly).",
                "outcome",
                [
                    ("received", { Double($0.counters.messagesReceived) }),
                    ("sent", { Double($0.counters.messagesSent) }),
                    ("dropped", { Double($0.counters.messagesDropped) }),
                ]),
        ]
    }

    /// Phases of joining, summed over all workers.
    static func joins(of workers: [WorkerReportCopy]) -> (publishers: JoinPhases, viewers: JoinPhases) {
        var joins = (publishers: JoinPhases(), viewers: JoinPhases())
        for worker in workers {
            joins.publishers.add(worker.counters.publishers)
            joins.viewers.add(worker.counters.viewers)
        }
        return joins
    }

    /// Time from a session's request to each phase of joining.
    /// - Parameters: `published` and `played`: how long their requests took to be answered.
    static func joins(
        _ workers: [WorkerReportCopy], published: DurationHistogram, played: DurationHistogram
    ) -> Metric {
        let (publishers, viewers) = joins(of: workers)
        let roles = [("publisher", publishers, published), ("viewer", viewers, played)]
        return Metric(
            "rostrum_join_seconds",
            "From a WHIP or WHEP request to each phase of joining: its answer, the first valid ICE check, the end of "
                + "the DTLS handshake, the first media packet from a publisher or to a viewer (who may have "
                + "waited for a publisher).",
            roles.flatMap { role, phases, answered in
                [
                    ("answered", answered), ("ice", phases.checked), ("dtls", phases.connected),
                    ("first_media", phases.firstMedia),
                ].map { phase, histogram in
                    ([Metric.Label("role", role), Metric.Label("phase", phase)], histogram)
                }
            })
    }

    /// RTP received and sent, and how long forwarding takes.
    private static func mediaMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        // Received is what publishers send once; sent is counted once per viewer.
        let kinds: [(String, (MediaCounters) -> MediaCounters.Volume)] = [
            ("audio", \.audioReceived), ("video", \.videoReceived), ("other", \.otherReceived),
        ]
        let sent: [(String, (MediaCounters) -> MediaCounters.Volume)] = [
            ("audio", \.audioSent), ("video", \.videoSent),
        ]
        return [
            labelled(
                workers, "rostrum_rtp_packets_received_total",
                "RTP packets from publishers; other ones are probes, duplicates and what no m-line takes.",
                "kind",
                kinds.map { name, volume in (name, { Double(volume($0.counters.media).packets) }) }),
            labelled(
                workers, "rostrum_rtp_bytes_received_total",
                "Bytes of decrypted RTP packets from publishers.",
                "kind", kinds.map { name, volume in (name, { Double(volume($0.counters.media).bytes) }) }),
            labelled(
                workers, "rostrum_rtp_packets_sent_total",
                "RTP packets forwarded to viewers, retransmissions left out.", "kind",
                sent.map { name, volume in (name, { Double(volume($0.counters.media).packets) }) }),
            labelled(
                workers, "rostrum_rtp_bytes_sent_total", "Bytes of SRTP packets forwarded to viewers.",
                "kind",
                sent.map { name, volume in (name, { Double(volume($0.counters.media).bytes) }) }),
            Metric(
                "rostrum_forwarding_latency_seconds",
                "From the wake-up that brought a batch of datagrams to the moment at which what it caused to be "
                    + "sent was with the kernel; measured once a batch, counted for each datagram sent.",
                workers.map { ([Metric.Label("worker", "\($0.index)")], $0.network.latency) }),
            Metric(
                "rostrum_forwarding_wait_seconds",
                "How long packets waited for others to leave with, before that; an idle worker never waits. Counted "
                    + "for each packet sent, with the wait of the first one among them.",
                workers.map { ([Metric.Label("worker", "\($0.index)")], $0.counters.waits) }),
        ]
    }

    /// Retransmissions, redundancy, key frames and layer switches.
    private static func repairMetrics(_ workers: [WorkerReportCopy]) -> [Metric] {
        let counters: [(String, String, KeyPath<MediaCounters, UInt64>)] = [
            (
                "retransmissions_requested", "RTP packets that viewers asked for again (NACK).",
                \.resendsRequested
            ),
            ("retransmissions_sent", "RTP packets sent to viewers again.", \.packetsResent),
            (
                "publisher_retransmissions_requested", "RTP packets that publishers were asked for again.",
                \.repairsRequested
            ),
            (
                "publisher_retransmissions_received",
                "RTP packets that publishers sent again and that were missing.",
                \.packetsRepaired
            ),
            (
                "publisher_redundant_packets",
                "Packets of publishers' sound that came in the format for earlier ones (RED).",
                \.redundancyReceived
            ),
            (
                "publisher_packets_recovered",
                "Packets of publishers' sound that got lost and were taken out of later ones.",
                \.packetsRecovered
            ),
            (
                "key_frame_demands", "Occasions on which a viewer needed a key frame: joins, PLI, FIR.",
                \.keyFrameDemands
            ),
            (
                "packets_thinned",
                "RTP packets of higher temporal layers that viewers were spared: neighbours in the feed, and those "
                    + "whose paths do not take them.",
                \.packetsThinned
            ),
            (
                "layer_steps_up", "Times that a viewer was given a better layer because the path takes it.",
                \.stepsUp
            ),
            (
                "layer_steps_down",
                "Times that a viewer was given a lower layer, or no picture, because the path takes no more.",
                \.stepsDown
            ),
            (
                "pictures_stopped", "Times that a viewer was left with sound alone for the same reason.",
                \.picturesStopped
            ),
            (
                "redundant_packets", "Packets of sound that carried earlier ones, for viewers who lose some.",
                \.packetsRedundant
            ),
            (
                "probe_bytes", "Bytes sent to viewers to find out whether their paths take more.",
                \.probeBytes
            ),
            ("replays", "Times that a viewer was sent cached pictures.", \.replays),
            ("key_frame_requests", "Key-frame requests sent to publishers.", \.keyFrameRequests),
            ("key_frames", "Key frames received.", \.keyFrames),
        ]
        return counters.map { name, help, path in
            perWorker(workers, "rostrum_\(name)_total", .counter, help) {
                Double($0.counters.media[keyPath: path])
            }
        }
    }

    /// Retransmissions that were requested but not sent, by reason.
    private static func refusals(_ workers: [WorkerReportCopy]) -> Metric {
        let reasons: [(String, KeyPath<MediaCounters.Refusals, UInt64>)] = [
            ("unknown", \.unknown), ("not_in_history", \.notInHistory), ("too_soon", \.tooSoon),
            ("before_key_frame", \.beforeKeyFrame), ("over_budget", \.overBudget),
        ]
        return labelled(
            workers, "rostrum_retransmissions_refused_total",
            "RTP packets that viewers asked for again and did not get: unknown (of a source that was let go of), "
                + "not_in_history (never came, or too old), too_soon (sent again less than a round trip ago), "
                + "before_key_frame (a later key frame was sent), over_budget.",
            "reason",
            reasons.map { reason, path in
                (reason, { Double($0.counters.media.refusals[keyPath: path]) })
            })
    }

    /// Lost packets by reason, from all parts of a worker, in one metric so that they can be summed.
    private static func drops(_ workers: [WorkerReportCopy]) -> Metric {
        // Each reason reads one counter, of the media path, of the socket, or of the worker itself.
        func media(_ path: KeyPath<MediaCounters.Drops, UInt64>) -> (WorkerReportCopy) -> Double {
            { Double($0.counters.media.drops[keyPath: path]) }
        }
        func network(_ path: KeyPath<TrafficCounters, UInt64>) -> (WorkerReportCopy) -> Double {
            { Double($0.network.traffic[keyPath: path]) }
        }
        return labelled(
            workers, "rostrum_drops_total",
            "Packets that went no further. Received: receive_buffer_full (the kernel's), truncated, no_session, "
                + "session_ended (a moment before), replay, unauthentic, undecodable, no_route (no m-line). For a "
                + "viewer: codec_not_negotiated, "
                + "before_start (older than the viewer's stream), no_address, oversize. On the way out: "
                + "send_buffer_full, datagram_too_large (path MTU), unreachable, send_error. Between workers: "
                + "relay_overflow, relay_no_track, handover_overflow (came to another worker, and waited too long). "
                + "Of clients who join: handshake_overflow.",
            "reason",
            [
                ("receive_buffer_full", network(\.droppedByKernel)),
                ("truncated", network(\.droppedTruncated)),
                ("no_session", { Double($0.counters.strangers) }),
                ("session_ended", { Double($0.counters.afterTheEnd) }), ("replay", media(\.replayed)),
                ("unauthentic", media(\.unauthentic)), ("undecodable", media(\.undecodable)),
                ("no_route", media(\.noRoute)), ("codec_not_negotiated", media(\.codecNotNegotiated)),
                ("before_start", media(\.beforeStart)), ("no_address", media(\.noAddress)),
                ("oversize", media(\.oversize)), ("send_buffer_full", network(\.droppedBufferFull)),
                ("datagram_too_large", network(\.droppedTooLarge)),
                ("unreachable", network(\.droppedUnreachable)), ("send_error", network(\.droppedOther)),
                ("relay_overflow", { Double($0.relayOverflow) }),
                ("handover_overflow", { Double($0.handoverOverflow) }),
                ("relay_no_track", { Double($0.counters.relayedInVain) }),
                ("handshake_overflow", { Double($0.counters.handshakesDropped) }),
            ])
    }
}
