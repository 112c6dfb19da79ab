import Foundation

/// Measures the CPU time and memory of the server under test.
///
/// Reads `/proc` if the server runs on this machine, else its metrics, if they have Prometheus's usual names.
struct ServerProbe: Sendable {
    private enum Source: Sendable {
        case process(Int)
        case metrics(URL)
        case none
    }

    private let source: Source
    private let client: SignallingClient
    /// Names the source in the report; `unknown` if there is none.
    let description: String

    /// Selects the source: the process of the options, then one that listens on the server's port, then the metrics.
    ///
    /// Metrics named on the command line take precedence over a listening process that was found.
    init(_ options: Options, client: SignallingClient) async {
        self.client = client
        let path = options.machine.metrics ?? "/metrics"
        let url = URL(string: path, relativeTo: options.server.url)?.absoluteURL
        let port = options.server.url.port ?? (options.server.url.scheme == "https" ? 443 : 80)
        let local = options.server.isLoopback ? ProcessFiles.listener(port: port) : nil
        if let pid = options.machine.serverPID ?? (options.machine.metrics == nil ? local : nil),
            ProcessFiles.usage(pid: pid) != nil
        {
            source = .process(pid)
            description = "process \(pid)"
        } else if let url, await Self.usage(of: url, client) != nil {
            source = .metrics(url)
            description = url.absoluteString
        } else {
            source = .none
            description = "unknown"
        }
    }

    /// - Returns: nil if the source is unknown or has failed.
    func usage() async -> ProcessFiles.Usage? {
        switch source {
        case .process(let pid): ProcessFiles.usage(pid: pid)
        case .metrics(let url): await Self.usage(of: url, client)
        case .none: nil
        }
    }

    private static func usage(of url: URL, _ client: SignallingClient) async -> ProcessFiles.Usage? {
        guard let text = try? await client.get(url) else { return nil }
        return usage(metrics: text)
    }

    /// Parses the two metrics of Prometheus's process collector from its text format; nil if either is missing.
    static func usage(metrics: String) -> ProcessFiles.Usage? {
        func value(_ name: String) -> Double? {
            let lines = metrics.split(whereSeparator: \.isNewline)
            guard
                let line = lines.first(where: { $0.hasPrefix(name + " ") || $0.hasPrefix(name + "{") })
            else { return nil }
            // Behind the name and its labels; the value may be followed by a timestamp.
            let values = line.lastIndex(of: "}").map { line[$0...].dropFirst() } ?? line.dropFirst(name.count)
            return values.split(separator: " ").first.flatMap { Double($0) }
        }
        guard let seconds = value("process_cpu_seconds_total"), seconds.isFinite, seconds >= 0,
            let resident = value("process_resident_memory_bytes"), resident >= 0, resident < 1e15
        else { return nil }
        return ProcessFiles.Usage(processorSeconds: seconds, residentBytes: Int(resident))
    }
}
