import Node
import Recordings
import Transcoder

/// Metrics of the transcoder's process and its products.
extension Node {
    /// Empty on a server without a transcoder.
    package var transcoderMetrics: [Metric] {
        get async {
            guard let counted = await transcoderCounters else { return [] }
            let process = counted.process
            return [
                Metric(
                    "rostrum_transcoder_up", .gauge,
                    "Whether the transcoder runs; it starts with its first work.",
                    process.isRunning ? 1 : 0),
                Metric(
                    "rostrum_transcoder_restarts_total", .counter, "Times that the transcoder died.",
                    Double(process.deaths)),
                Metric(
                    "rostrum_transcoder_cpu_seconds_total", .counter, "CPU time of the transcoder.",
                    Double(process.cpuNanoseconds) / 1e9),
                Metric(
                    "rostrum_transcoder_resident_bytes", .gauge, "Memory of the transcoder, at its highest.",
                    Double(process.residentBytes)),
                Metric(
                    "rostrum_transcoder_jobs", .gauge, "What the transcoder does now.", Double(process.jobs)),
                Metric(
                    "rostrum_transcoder_packets_dropped_total", .counter,
                    "Packets that found no room on their way to the transcoder, or too many of one source.",
                    Double(process.packetsDropped)),
                Metric(
                    "rostrum_transcoder_sources_refused", .gauge,
                    "Sources that are not decoded any more, because the transcoder died of them.",
                    Double(process.refusedSources)),
                Metric(
                    "rostrum_previews_made_total", .counter, "Previews of streams.",
                    Double(counted.previews.made)),
                Metric(
                    "rostrum_previews_failed_total", .counter, "Previews that could not be made.",
                    Double(counted.previews.failed)),
                Metric(
                    "rostrum_previews_cpu_seconds_total", .counter, "CPU time of previews.",
                    Double(counted.previews.nanoseconds) / 1e9),
                Metric(
                    "rostrum_pause_pictures", .gauge, "Programmes whose viewers get a pause picture now.",
                    Double(pausedCount)),
                Metric(
                    "rostrum_previews_bytes", .gauge, "Previews that are kept.",
                    Double(counted.previews.bytes)),
            ] + (await recordingMetrics) + (await clipMetrics)
        }
    }

    /// Empty on a server without clips.
    private var clipMetrics: [Metric] {
        get async {
            guard let counted = await clips?.counters else { return [] }
            return [
                Metric(
                    "rostrum_clips_streams", .gauge, "Streams of which the last minutes are kept.",
                    Double(counted.streams)),
                Metric(
                    "rostrum_clips_making", .gauge, "Clips that are being made.", Double(counted.making)),
                Metric("rostrum_clips_made_total", .counter, "Clips made.", Double(counted.made)),
                Metric(
                    "rostrum_clips_failed_total", .counter, "Clips that could not be made.",
                    Double(counted.failed)),
            ]
        }
    }

    /// Empty on a server without recordings.
    private var recordingMetrics: [Metric] {
        get async {
            guard let counted = await recordings?.counters else { return [] }
            return [
                Metric(
                    "rostrum_recordings_active", .gauge, "Streams that are being recorded.",
                    Double(counted.active)),
                Metric(
                    "rostrum_recordings_started_total", .counter, "Recordings begun.", Double(counted.started)
                ),
                Metric(
                    "rostrum_recordings_ended_total", .counter, "Files of recordings completed, by reason.",
                    RecordingEntry.EndReason.allCases.map { reason in
                        Metric.Sample(
                            Double(counted.ended[reason] ?? 0), [Metric.Label("reason", reason.rawValue)])
                    }),
                Metric(
                    "rostrum_recordings_bytes_total", .counter, "Bytes of recordings written.",
                    Double(counted.bytes)),
            ]
        }
    }
}
