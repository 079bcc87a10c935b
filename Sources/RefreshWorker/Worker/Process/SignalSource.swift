import Dispatch

/// A Dispatch source that delivers a signal.
///
/// It is Sendable because only `cancel` is called after its creation, which Dispatch allows from any thread, and its
/// reference count is atomic like that of every Dispatch object.
struct SignalSource: @unchecked Sendable {
    let source: any DispatchSourceSignal
}
