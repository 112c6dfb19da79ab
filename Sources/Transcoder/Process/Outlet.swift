import Base
import CSandbox
import Synchronization

/// The transcoder's way to the server: any thread may report.
package final class Outlet: Sendable {
    private let descriptor: Int32
    /// What is written goes out in the order in which it was reported.
    private let scratch = Mutex<[UInt8]>([])

    package init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Sends reports, together where they fit; waits while the server does not take them.
    package func send(_ reports: [TranscoderReport]) {
        guard !reports.isEmpty else { return }
        scratch.withLock { bytes in
            bytes.removeAll(keepingCapacity: true)
            for report in reports { report.append(to: &bytes) }
            var place = 0
            while place < bytes.count {
                let count = min(TranscoderChannel.datagramLimit, bytes.count - place)
                let sent = unsafe bytes.withUnsafeBytes { buffer in
                    unsafe csandbox_send(descriptor, buffer.baseAddress.map { unsafe $0 + place }, count)
                }
                // The server is gone: the reader learns of it too, and ends the process.
                guard sent > 0 else { return }
                place += Int(sent)
            }
        }
    }

    /// One report; waits like `send(_:)` of several.
    package func send(_ report: TranscoderReport) {
        send([report])
    }

    /// Logs by way of the server, because the process has no log of its own.
    package func log(_ level: Log.Level, _ event: String, _ text: String) {
        send(.log(level, event: event, text: String(text.prefix(500))))
    }
}
