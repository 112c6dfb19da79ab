import Base
import CLinux
import CSandbox
import Foundation
import Wire

/// The main loop of the transcoder: passes the server's messages to jobs, until the server is gone.
package final class TranscoderProcess {
    /// Descriptors inherited from the server: the socket, and the memory of the register.
    private static let channel: Int32 = 3
    private static let registerMemory: Int32 = 4
    /// Most jobs and inputs at the same time.
    private static let jobLimit = 4_096
    private static let inputLimit = 16_384
    /// Exit status of a process that has to be confined and could not be.
    static let unconfinedStatus: Int32 = 3
    /// Argument that lets the process run without confinement.
    static let unconfinedArgument = "unconfined"

    /// Creates a job; nil for a request that cannot be parsed.
    package typealias Maker = (JobKind, [UInt8], JobEnvironment) -> (any TranscoderJob)?

    private let outlet: Outlet
    private let register: DecodingRegister
    private let pool = DecodingPool()
    private let make: Maker
    private var jobs: [JobID: any TranscoderJob] = [:]
    private var inputs: [InputID: JobID] = [:]

    private init(outlet: Outlet, register: DecodingRegister, make: @escaping Maker) {
        self.outlet = outlet
        self.make = make
        self.register = register
    }

    /// Runs `rostrum transcoder`.
    /// - Parameters:
    ///   - arguments: the server's process ID, the niceness, and optionally `unconfinedArgument`.
    ///   - special: creates jobs in place of the usual ones, for tests.
    ///   - confine: replaces the confinement, for tests.
    /// - Returns: the exit status: 0 after a regular end, 1 for a message that cannot be parsed, 2 for bad arguments
    ///   or without the register, `unconfinedStatus`.
    package static func run(
        _ arguments: [String], special: @escaping Maker = { _, _, _ in nil },
        confine: (Int32, Int32) -> [Confinement.Refusal] = Confinement.confine
    ) -> Int32 {
        guard (2...3).contains(arguments.count), let parent = Int32(arguments[0]),
            let niceness = Int32(arguments[1]), TranscoderSettings.nicenesses.contains(Int(niceness)),
            let register = DecodingRegister(descriptor: registerMemory)
        else { return 2 }
        let outlet = Outlet(descriptor: channel)
        outlet.send(.hello(version: TranscoderChannel.version))
        let refusals = confine(parent, niceness)
        if !refusals.isEmpty {
            outlet.log(.warning, "transcoder.unconfined", refusals.map(\.text).joined(separator: ", "))
        }
        if refusals.contains(where: \.isGrave), arguments.last != unconfinedArgument {
            return unconfinedStatus
        }
        let process = TranscoderProcess(outlet: outlet, register: register) {
            special($0, $1, $2) ?? JobFactory.make($0, $1, $2)
        }
        return process.loop() ? 0 : 1
    }

    /// Reads messages until the server closes the socket, and reports the load once per second.
    /// - Returns: false if a message could not be parsed.
    private func loop() -> Bool {
        var assembler = MessageAssembler()
        var buffer = [UInt8](repeating: 0, count: TranscoderChannel.datagramLimit)
        var nextLoad = MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
        while true {
            if csandbox_wait(Self.channel, 1_000) > 0 {
                let count = unsafe csandbox_receive(Self.channel, &buffer, buffer.count)
                guard count > 0 else { return true }
                var isUnderstood = true
                do {
                    try assembler.receive(buffer[..<Int(count)]) { kind, body in
                        guard let request = try? TranscoderRequest(kind, body) else {
                            return isUnderstood = false
                        }
                        if !take(request) { isUnderstood = false }
                    }
                } catch {
                    return false
                }
                guard isUnderstood else { return false }
            }
            let now = MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
            guard now >= nextLoad else { continue }
            nextLoad = now + .seconds(1)
            var load = TranscoderLoad()
            unsafe csandbox_usage(&load.cpuNanoseconds, &load.residentBytes)
            outlet.send(.load(load))
        }
    }

    /// Processes a message; those for unknown jobs and inputs are ignored.
    /// - Returns: false if the server's version differs.
    private func take(_ request: TranscoderRequest) -> Bool {
        switch request {
        case .hello(let version): return version == TranscoderChannel.version
        case .begin(let id, let kind, let body):
            let environment = JobEnvironment(id: id, outlet: outlet, register: register, pool: pool)
            guard jobs[id] == nil, jobs.count < Self.jobLimit,
                let job = make(kind, body, environment)
            else {
                outlet.send(.ended(id))
                return true
            }
            jobs[id] = job
        case .command(let id, let body): jobs[id]?.command(body)
        case .end(let id):
            jobs.removeValue(forKey: id)?.end()
            inputs = inputs.filter { $0.value != id }
        case .open(let input, let id, let source, let codec):
            guard let job = jobs[id], inputs[input] == nil, inputs.count < Self.inputLimit else {
                return true
            }
            inputs[input] = id
            job.open(input, from: source, codec)
        case .packet(let input, let packet):
            guard let id = inputs[input] else { return true }
            jobs[id]?.take(packet, of: input)
        case .close(let input):
            guard let id = inputs.removeValue(forKey: input) else { return true }
            jobs[id]?.close(input)
        }
        return true
    }
}
