// A second kind of device for tests. Its memory is the host's and the CPU's kernels compute what is asked of it, but its
// tensors refuse those of the CPU and of the device beside it, as a GPU's do. It counts what a program would have waited
// for: numbers that were read, and copies to the host.
#include <torch/extension.h>

#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

constexpr auto SECOND = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex COUNT = 2;

thread_local c10::DeviceIndex current = 0;
thread_local bool in_kernel = false;  // the copies that a kernel makes here are none on a GPU
std::atomic<int64_t> numbers_read{0}, copies_to_host{0};
std::atomic<PyObject*> observer{nullptr};

void waits_for(std::atomic<int64_t>& what) {
  ++what;
  if (auto* told = observer.load()) {
    pybind11::gil_scoped_acquire python;
    pybind11::handle{told}.operator()();
  }
}

struct CurrentDevice {
  c10::DeviceIndex before = current;
  explicit CurrentDevice(std::optional<at::Device> device) {
    if (device && device->type() == SECOND && device->has_index()) current = device->index();
  }
  ~CurrentDevice() { current = before; }
};

struct DeviceGuard final : c10::impl::DeviceGuardImplInterface {
  DeviceGuard() = default;
  explicit DeviceGuard(c10::DeviceType) {}
  c10::DeviceType type() const override { return SECOND; }
  c10::Device getDevice() const override { return {SECOND, current}; }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = std::max<c10::DeviceIndex>(device.index(), 0); }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  c10::Device exchangeDevice(c10::Device device) const override {
    auto before = getDevice();
    setDevice(device);
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return COUNT; }
  // Everything is over when its call returns: one stream, and events that have always happened.
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, DeviceGuard);

struct HostMemory final : at::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    void* memory = std::malloc(std::max<size_t>(bytes, 1));
    return {memory, memory, &std::free, c10::Device(SECOND, current)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};
HostMemory allocator;
REGISTER_ALLOCATOR(SECOND, &allocator);

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  CurrentDevice on(device);
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  CurrentDevice on(device);
  return at::detail::empty_strided_generic(size, stride, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

// The same memory, as the CPU's kernels take it.
at::Tensor as_host(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), at::TensorOptions().dtype(tensor.dtype()));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  if (!in_kernel && to.is_cpu()) waits_for(copies_to_host);
  as_host(to).copy_(as_host(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());  // a part of a tensor keeps its strides
  as_host(to).copy_(as_host(from));
  return to;
}

at::Scalar read_number(const at::Tensor& tensor) {
  if (!in_kernel) waits_for(numbers_read);
  return as_host(tensor).item();
}

void grow(const c10::Storage& storage, size_t bytes) {
  CurrentDevice on(storage.device());
  auto memory = allocator.allocate(bytes);
  std::memcpy(memory.get(), storage.data_ptr().get(), std::min(bytes, storage.nbytes()));
  storage.set_data_ptr(std::move(memory));
  storage.set_nbytes(bytes);
}

const at::Tensor& resize(const at::Tensor& tensor, c10::SymIntArrayRef size, std::optional<at::MemoryFormat>) {
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  size_t elements = tensor.storage_offset() + c10::multiply_integers(sizes);
  if (elements * tensor.itemsize() > tensor.storage().nbytes()) grow(tensor.storage(), elements * tensor.itemsize());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

at::Tensor as_strided(const at::Tensor& tensor, c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(tensor, size, stride, offset);
}
at::Tensor view(const at::Tensor& tensor, c10::IntArrayRef size) { return at::native::view(tensor, size); }
at::Tensor reshape_alias(const at::Tensor& tensor, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::_reshape_alias(tensor, size, stride);
}
at::Tensor unfold(const at::Tensor& tensor, int64_t dim, int64_t size, int64_t step) {
  return at::native::unfold(tensor, dim, size, step);
}
at::Tensor& set_storage(at::Tensor& tensor, at::Storage from, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::set_storage_cpu_(tensor, from, offset, size, stride);
}
at::Tensor& set_source(at::Tensor& tensor, at::Storage from) {
  int64_t elements = from.nbytes() / tensor.itemsize();
  return at::native::set_storage_cpu_(tensor, from, 0, {elements}, {1});
}

struct InKernel {
  bool before = std::exchange(in_kernel, true);
  ~InKernel() { in_kernel = before; }
};

// All other operations: the CPU's, of tensors that lie together. As on a GPU, a single number of the CPU may come along,
// and what indexes a tensor may.
void on_the_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const auto& name = operation.schema().name();
  const bool indexes = name == "aten::index" || name == "aten::index_put_" || name == "aten::_index_put_impl_";
  std::optional<c10::Device> together;
  auto meets = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.dim() == 0) return;
    TORCH_CHECK(tensor.device().type() == SECOND && together.value_or(tensor.device()) == tensor.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                together.value_or(c10::Device(SECOND, current)), " and ", tensor.device(), "! (", name, ")");
    together = tensor.device();
  };
  for (const auto& value : torch::jit::last(*stack, operation.schema().arguments().size())) {
    if (value.isTensor()) meets(value.toTensor());
    if (value.isTensorList() && !indexes)
      for (const at::Tensor& tensor : value.toTensorList()) meets(tensor);
  }
  InKernel in;
  at::native::cpu_fallback(operation, stack);
}

// A convolution is asked of each device for itself.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                       c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  InKernel in;
  auto of_host = bias && bias->defined() ? std::optional<at::Tensor>(as_host(*bias)) : std::nullopt;
  return at::convolution_symint(as_host(input), as_host(weight), of_host, stride, padding, dilation, transposed,
                                output_padding, groups)
      .to(input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> wanted) {
  InKernel in;
  const std::vector<c10::SymInt> bias_size{gradient.sym_size(1)};
  auto [of_input, of_weight, of_bias] = at::convolution_backward_symint(
      as_host(gradient), as_host(input), as_host(weight), bias_size, stride, padding, dilation, transposed, output_padding,
      groups, wanted);
  auto there = [&](const at::Tensor& each) { return each.defined() ? each.to(input.device()) : each; };
  return {there(of_input), there(of_weight), there(of_bias)};
}

// Its running statistics are changed in place, of which its schema says nothing: the fallback would change copies.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias,
                                                          const std::optional<at::Tensor>& mean,
                                                          const std::optional<at::Tensor>& variance, bool training,
                                                          double momentum, double eps) {
  InKernel in;
  auto host = [](const std::optional<at::Tensor>& each) {
    return each && each->defined() ? std::optional<at::Tensor>(as_host(*each)) : std::nullopt;
  };
  auto [output, saved_mean, saved_deviation] = at::native_batch_norm(
      as_host(input), host(weight), host(bias), host(mean), host(variance), training, momentum, eps);
  return {output.to(input.device()), saved_mean.to(input.device()), saved_deviation.to(input.device())};
}

// A cell of a recurrent network is one fused operation on devices other than the CPU.
using Bias = const std::optional<at::Tensor>&;
at::Tensor with(const at::Tensor& gates, Bias bias) { return bias && bias->defined() ? gates + *bias : gates; }

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& cell,
                                                         Bias of_input, Bias of_hidden) {
  auto gates = with(with(input + hidden, of_input), of_hidden);
  auto parts = gates.chunk(4, 1);
  auto next = parts[1].sigmoid() * cell + parts[0].sigmoid() * parts[2].tanh();
  return {parts[3].sigmoid() * next.tanh(), next, gates};
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input, const at::Tensor& hidden, const at::Tensor& state,
                                            Bias of_input, Bias of_hidden) {
  auto from_input = with(input, of_input).chunk(3, 1), from_hidden = with(hidden, of_hidden).chunk(3, 1);
  auto reset = (from_input[0] + from_hidden[0]).sigmoid(), update = (from_input[1] + from_hidden[1]).sigmoid();
  auto proposed = (from_input[2] + reset * from_hidden[2]).tanh();
  return {proposed + update * (state - proposed), input};
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  // The CPU's, so that a seed draws the same on both.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return at::detail::getDefaultCPUGenerator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override { grow(storage, bytes); }
};
Hooks hooks;
[[maybe_unused]] const bool registered = (at::RegisterPrivateUse1HooksInterface(&hooks), true);

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", &read_number);
  library.impl("resize_", &resize);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("unfold", &unfold);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("set_.source_Storage", &set_source);
  library.impl("native_batch_norm", &batch_norm);
  library.impl("convolution_overrideable", &convolution);
  library.impl("convolution_backward_overrideable", &convolution_backward);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("_thnn_fused_lstm_cell", &lstm_cell);
  library.impl("_thnn_fused_gru_cell", &gru_cell);
}

// Autocast: products in the lower precision, and what loses by it in float32.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) { library.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {  // the macro's own name for it
  KERNEL_PRIVATEUSEONE(mm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(bmm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(addmm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(matmul, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(linear, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(conv2d, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(scaled_dot_product_attention, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(layer_norm, fp32)
  KERNEL_PRIVATEUSEONE(cross_entropy_loss, fp32)
  KERNEL_PRIVATEUSEONE(mse_loss, fp32)
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("waits", [] { return std::make_pair(numbers_read.load(), copies_to_host.load()); });
  module.def("observe", [](pybind11::object told) { observer = told.is_none() ? nullptr : told.release().ptr(); });
  module.def("current_device", [] { return static_cast<int>(current); });
  module.def("set_device", [](int index) { current = static_cast<c10::DeviceIndex>(index); });
}
