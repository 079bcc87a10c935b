import Dispatch
import Synchronization

/// One parser that reads bytes from outside, with the properties that must hold for every input.
///
/// A property that does not hold ends the process, as libFuzzer expects.
struct FuzzTarget: Sendable {
    let name: String
    let run: @Sendable ([UInt8]) -> Void

    static let all: [FuzzTarget] = values + tokens + files + network + http2 + workerTokens

    static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}

/// Ends the process unless a property holds.
func require(_ condition: Bool, _ property: @autoclosure () -> String) {
    guard !condition else { return }
    fatalError("violated: \(property())")
}

/// Runs async code from the fuzzer's thread, which may block.
func waitFor<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value {
    let outcome = Mutex<Value?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    Task {
        let value = await body()
        outcome.withLock { $0 = value }
        isDone.signal()
    }
    isDone.wait()
    guard let value = outcome.withLock({ $0 }) else { fatalError("the task ended without a value") }
    return value
}
