import Worker

/// The result of a command's work, or the signal that stopped it.
enum InterruptibleResult<Value: Sendable>: Sendable {
    case finished(Result<Value, any Error>)
    case stopped(SignalPolicy.Signal)
}
