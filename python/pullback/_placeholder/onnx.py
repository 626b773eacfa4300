"""Names of the exporter to ONNX that libraries import; each says when called that there is none."""

from __future__ import annotations

__all__ = ["FUNCTIONS"]

# The functions by namespace, as PyTorch 2.15 has them.
FUNCTIONS = {
    "torch.onnx.symbolic_helper": """
        _apply_params _arange_cast_helper _arange_helper _argmin_argmax_helper _as_list_type
        _avgpool_helper _batchnorm_helper _block_list_in_opset _embedding_bag_helper
        _flatten_helper _generate_wrapped_number _get_const _get_dim_for_cross
        _get_interpolate_attributes _get_tensor_dim_size _get_tensor_rank _get_tensor_sizes
        _handle_reduce_dim_none _if_scalar_type_as _index_fill_reshape_helper
        _interpolate_get_scales _interpolate_get_scales_and_mode
        _interpolate_get_scales_if_available _interpolate_helper _interpolate_size_to_scales
        _interpolate_warning _is_bool _is_constant _is_fp _is_list _is_none _is_onnx_constant
        _is_packed_list _is_scalar_list _is_split_static _is_tensor _is_tensor_list
        _is_tuple_construct _is_value _linalg_vector_norm_helper _lt_helper _max_helper
        _maybe_cast_reduce_op_input _maybe_cast_to_type _maybe_get_const _maybe_get_scalar
        _min_helper _node_get _numel_helper _onnx_opset_unsupported
        _onnx_opset_unsupported_detailed _onnx_unsupported _op_with_optional_float_cast
        _optional_input_placeholder_tensor _overload_by_arg_count _parse_arg
        _reduce_op_symbolic_helper _reduce_with_dtype_helper _reducesum_helper
        _repeat_interleave_single_value_repeat_helper _repeat_interleave_split_helper
        _reshape_helper _scalar _scatter_helper _select_helper _size_helper _slice_helper
        _sort_helper _squeeze_helper _topk_helper _try_get_scalar_type _type_promote_from_values
        _unbind_helper _unimplemented _unpack_list _unpack_quantized_tensor _unpack_tuple
        _unsqueeze_helper _var_mean_helper args_have_same_dtype check_training_mode
        dequantize_helper is_complex_value quantize_helper quantized_args requantize_bias_helper
    """,
    "torch.onnx.utils": """
        _add_block _add_input_to_block _add_output_to_block _apply_friendly_debug_names
        _check_flatten_did_not_remove _create_jit_graph _decide_add_node_names
        _decide_constant_folding _decide_input_format _decide_keep_init_as_input _export
        _get_aten_op_overload_name _get_example_outputs _get_module_attributes
        _get_named_param_dict _get_param_count_list _is_constant_tensor_list _model_to_graph
        _optimize_graph _pre_trace_quant_model _reset_trace_module_map
        _resolve_args_by_export_type _run_symbolic_function _run_symbolic_method
        _set_input_and_output_names _setup_trace_module_map _should_aten_fallback _signature
        _split_tensor_list_constants _trace _trace_and_get_graph_from_model
        _trigger_symbolic_function_registration _validate_dynamic_axes _verify_custom_op_name
        disable_apex_o2_state_dict_hook export exporter_context model_signature
        select_model_mode_for_export setup_onnx_logging
        unconvertible_ops unpack_quantized_tensor
        warn_on_static_input_change
    """,
}
