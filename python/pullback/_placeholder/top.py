"""The placeholders of the main namespace.

They are put there by the import of the package, so that this is short and needs no table.
"""

from __future__ import annotations

from . import Refusal, made_of

_SCRIPT = Refusal(
    "there is no TorchScript, whose compiler this is a part of", "run the Python function itself"
)
_QUANTIZED = Refusal(
    "there are no quantized tensors", "compute in float32, bfloat16 or float16 (torch.autocast)"
)
_BITS = Refusal(
    "there are no tensors of single bits, nor of integers of less than a byte",
    "keep them in torch.uint8, or two of 4 bits in torch.float4_e2m1fn_x2",
)
_OTHERS = Refusal(
    "it is a function of a library that is not part of this build",
    "call the function of torch or torch.nn.functional for it",
)
_DISPATCHER = Refusal(
    "it is a part of PyTorch's dispatcher and archives in C++",
    "see torch.library and torch.save",
)
_SYMBOLIC = Refusal("no program is traced, sizes are numbers", "use the number itself")

_CLASSES: tuple[tuple[Refusal, str], ...] = (
    (
        _SCRIPT,
        "AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig "
        "BenchmarkExecutionStats Block BoolType BufferDict CallStack Capsule ClassType Code "
        "CompleteArgumentSpec ComplexType ConcreteModuleType ConcreteModuleTypeBuilder "
        "DeepCopyMemoTable DeviceObjType DictType EnumType ErrorReport ExecutionPlan FileCheck "
        "FloatType FunctionSchema FutureType Gradient Graph GraphExecutorState IODescriptor "
        "InferredType IntType InterfaceType JITException ListType LiteScriptModule LockingLogger "
        "LoggerBase ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType "
        "ParameterDict PyObjectType RRefType ScriptClass ScriptClassFunction ScriptDict "
        "ScriptDictIterator ScriptDictKeyIterator ScriptList ScriptListIterator ScriptMethod "
        "ScriptModuleSerializer ScriptObject ScriptObjectProperty StaticModule StreamObjType "
        "StringType SymBoolType SymIntType TensorType TracingState TupleType Type UnionType Use "
        "Value CompilationUnit ScriptModule ThroughputBenchmark",
    ),
    (
        _DISPATCHER,
        "DeserializationStorageContext DisableTorchFunction DisableTorchFunctionSubclass "
        "DispatchKey DispatchKeySet ExcludeDispatchKeyGuard PyTorchFileReader PyTorchFileWriter "
        "SerializationStorageContext StorageBase FatalError",
    ),
    (_SYMBOLIC, "SymBool SymFloat"),
    (
        _QUANTIZED,
        "QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage qscheme",
    ),
)
_FUNCTIONS: tuple[tuple[Refusal, str], ...] = (
    (_SYMBOLIC, "sym_fresh_size"),
    (
        _SCRIPT,
        "import_ir_module import_ir_module_from_buffer merge_type_from_type_comment parse_ir "
        "parse_schema parse_type_comment unify_type_list",
    ),
    (
        _QUANTIZED,
        "choose_qparams_optimized dequantize empty_quantized fake_quantize_per_channel_affine "
        "fake_quantize_per_tensor_affine fbgemm_linear_fp16_weight "
        "fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
        "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight "
        "fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant "
        "int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
        "q_zero_point quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic "
        "quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell "
        "quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell "
        "quantized_rnn_tanh_cell",
    ),
    (
        _OTHERS,
        "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu "
        "cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler miopen_batch_norm "
        "miopen_convolution miopen_convolution_add_relu miopen_convolution_relu "
        "miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn "
        "mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights "
        "mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer",
    ),
)
_VALUES: tuple[tuple[Refusal, str], ...] = (
    (_SCRIPT, "AVG SUM"),
    (
        _QUANTIZED,
        "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric "
        "per_tensor_affine per_tensor_symmetric qint32 qint8 quint2x4 quint4x2 quint8",
    ),
    (
        _BITS,
        "bit bits16 bits1x8 bits2x4 bits4x2 bits8 int1 int2 int3 int4 int5 int6 int7 uint1 uint2 "
        "uint3 uint4 uint5 uint6 uint7",
    ),
)
_KINDS = {"class": _CLASSES, "function": _FUNCTIONS, "value": _VALUES}

_EACH = [
    (f"torch.{name}", kind, refusal)
    for kind, groups in _KINDS.items()
    for refusal, names in groups
    for name in names.split()
]
# The reasons, by name.
NAMES = {full: refusal for full, _, refusal in _EACH}


def placeholders() -> dict[str, object]:
    """The placeholders by their names."""
    return {full[len("torch.") :]: made_of(full, kind, refusal) for full, kind, refusal in _EACH}
