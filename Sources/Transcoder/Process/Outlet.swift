import Base
import CSandbox
import Synchronization

/// Sends reports from the transcoder to the server; any thread may call it.
package final class Outlet: Sendable {
    /// The process's end of the socket.
    private let descriptor: Int32
    /// Reused buffer; its lock also keeps messages of different threads apart.
    private let scratch = Mutex<[UInt8]>([])

    package init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Sends reports, several per datagram where possible; blocks while the server does not read them.
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
                // The server is gone. The reading thread notices as well, and ends the process.
                guard sent > 0 else { return }
                place += Int(sent)
            }
        }
    }

    /// Sends one report; blocks like `send(_:)` of several.
    package func send(_ report: TranscoderReport) {
        send([report])
    }

    /// Logs through the server, because the process has no log of its own.
    package func log(_ level: Log.Level, _ event: String, _ text: String) {
        send(.log(level, event: event, text: String(text.prefix(500))))
    }
}
