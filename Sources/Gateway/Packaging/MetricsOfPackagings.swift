import Node

/// Metrics of HLS and of the encodes behind it.
extension Node {
    /// Empty if the node has no packaging.
    package var packagingMetrics: [Metric] {
        get async {
            guard let counters = await packagings?.counters else { return [] }
            return [
                Metric(
                    "rostrum_hls_streams", .gauge, "Streams of which HLS is made now.",
                    Double(counters.watched)),
                Metric(
                    "rostrum_encodes", .gauge,
                    "Renditions of streams' programmes that are made for HLS, for targets, or for both.",
                    Double(counters.active)),
                Metric(
                    "rostrum_encodes_reduced", .gauge,
                    "Of them, those for links that carry little: smaller pictures, or sound alone.",
                    Double(counters.reduced)),
                Metric(
                    "rostrum_encodes_passed", .gauge,
                    "Of them, those whose pictures are passed on as their publisher encoded them.",
                    Double(counters.passed)),
                Metric(
                    "rostrum_hls_requests_waiting", .gauge, "Requests that wait for the next part.",
                    Double(counters.waiting)),
                Metric(
                    "rostrum_hls_segment_bytes", .gauge, "Memory that segments take.",
                    Double(counters.bytes)),
                Metric(
                    "rostrum_hls_started_total", .counter, "Renditions of streams whose HLS was begun.",
                    Double(counters.started)),
                Metric(
                    "rostrum_hls_refused_total", .counter,
                    "Requests that --max-hls left without HLS.", Double(counters.refused)),
                Metric(
                    "rostrum_hls_lost_total", .counter, "Times that HLS went on after its process had died.",
                    Double(counters.lost)),
                Metric(
                    "rostrum_hls_kept_streams", .gauge, "Streams that viewers by HLS can go back in.",
                    Double(counters.kept)),
                Metric(
                    "rostrum_hls_kept_bytes", .gauge, "Segments on the disk, for viewers who go back.",
                    Double(counters.storedBytes)),
                Metric(
                    "rostrum_hls_not_kept_total", .counter,
                    "Segments that the disk did not take: nobody can go back beyond them.",
                    Double(counters.notStored)),
                Metric("rostrum_hls_parts_total", .counter, "Parts that were made.", Double(counters.parts)),
            ]
        }
    }
}
